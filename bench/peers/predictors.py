"""Ways to predict a job's memory, gpumem's estimators among them: what each is run with, asked, and answers."""

from __future__ import annotations

import dataclasses
import json

from processes import Server

MIB = 1024**2


@dataclasses.dataclass
class Answer:
    """What a peer says of a job: bytes, or a bin of MiB, or neither (made-up weights); or why it does not."""

    bytes: int | None = None
    bin: tuple | None = None
    how: str = ""
    error: str = ""

    def __str__(self):
        if self.error:
            return "none"
        if self.bin:
            return f"{self.bin[0]:,.0f} to {self.bin[1]:,.0f} MiB"
        return "" if self.bytes is None else f"{self.bytes / MIB:,.1f} MiB"


class Peer:
    """One way to predict a job's memory. `folder` holds the jobs' graphs, one copy a turn."""

    ours = False

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder = name, command, folder

    def command_for(self, _job):
        return self.command

    def line(self, job, turn):
        """What asks for the job; a later turn builds the model again."""
        return json.dumps({"model": job.model, "batch": job.batch, "turn": turn})

    def read(self, text):
        answer = json.loads(text) if text else {"error": "it ended without an answer"}
        range_mib = answer.get("range_mib")
        return Answer(answer.get("bytes"), range_mib and tuple(range_mib), answer.get("how", ""), answer.get("error", ""))

    def cold(self, job):
        """(answer, seconds from start to end, bytes)"""
        server = Server(self.command_for(job))
        text, _ = server.ask(self.line(job, 0))
        memory = server.memory() if text else None
        return self.read(text), server.stop(), memory


class LibtorchMeta(Peer):
    def line(self, job, turn):
        return f"{self.folder / f'{job.model}-{turn}.json'} {job.batch}"

    def read(self, text):
        words = text.split(maxsplit=1)
        if not words or words[0] == "error":
            return Answer(error=words[1].strip() if len(words) > 1 else "it ended without an answer")
        return Answer(int(words[0]))


class PublishedNetwork(Peer):
    """Reads the features that a worker has found; one network a kind of net, each a process of its own."""

    def __init__(self, name, command, folder, features, weights):
        super().__init__(name, command, folder)
        self.features, self.weights = features, weights

    def command_for(self, job):
        folder = self.weights.get(self.features[job]["nets"]) if self.weights else None
        return self.command if folder is None else [*self.command, "--weights", str(folder)]

    def line(self, job, turn):
        fields = {"model": job.model, "batch": job.batch, "turn": turn}
        if self.weights:
            found = self.features[job]
            config = json.loads((self.weights[found["nets"]] / "config.json").read_text())
            names = [spec["name"].removeprefix("gpumemnet.") for spec in config["features"]]
            fields["features"] = [found["features"][name] for name in names]
            fields["sequence"] = found["sequence"]
        return json.dumps(fields)


class Ours(Peer):
    """An estimator of gpumem. `fields` are what its jobs say besides."""

    ours = True

    def __init__(self, name, program, folder, fields=None, features=None, weights=None):
        super().__init__(name, [program, "batch"], folder)
        self.program, self.fields, self.features, self.weights = program, fields or {}, features, weights

    def fields_of(self, job):
        model = {"model": str(self.weights[self.features[job]["nets"]])} if self.weights else {}
        return {"estimator": self.name, **self.fields, **model}

    def line(self, job, turn):
        path = str(self.folder / f"{job.model}-{turn}.json")
        return json.dumps({"summary": path, "batch_size": job.batch, **self.fields_of(job)})

    def read(self, text):
        if not text:
            return Answer(error="it ended without an answer")
        answer = json.loads(text)
        if "error" in answer:
            return Answer(error=answer["error"]["message"])
        estimate = answer["estimates"][0]
        if "error" in estimate:
            return Answer(error=estimate["error"]["message"])
        if "bins" in estimate:
            likeliest = max(estimate["bins"], key=lambda entry: entry["probability"])
            return Answer(bin=(likeliest["lower_bytes"] / MIB, likeliest["upper_bytes"] / MIB))
        return Answer(estimate["expected_bytes"])

    def cold(self, job):
        """As a user runs it; its memory is that of a process that stays up for a look at it."""
        words = [self.program, "estimate", str(self.folder / f"{job.model}-0.json"), "--batch", str(job.batch), "--json"]
        for field, value in self.fields_of(job).items():
            words += ["--" + field.replace("_", "-"), str(value)]
        done = Server(words)
        text = done.process.stdout.read()
        seconds = done.stop()
        if done.process.returncode != 0:
            return Answer(error=f"exit code {done.process.returncode} of {' '.join(words)}"), seconds, None
        server = Server(self.command)
        server.ask(self.line(job, 0))
        memory = server.memory()
        server.stop()
        return self.read(text), seconds, memory

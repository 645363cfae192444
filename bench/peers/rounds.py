"""Rounds: every job through every peer, cold and warm."""

from __future__ import annotations

import dataclasses
import statistics
import sys

import jobs as job_list

from predictors import Answer
from processes import Server


@dataclasses.dataclass
class Run:
    """One job through one peer in one round. Seconds and bytes."""

    peer: str
    job: str
    round: int
    cold: float
    warm: float
    memory: int
    answer: Answer


def write_graphs(folder, models, turns):
    for model in models:
        for turn in range(turns):
            (folder / f"{model}-{turn}.json").write_text(job_list.graph_text(model))


class Servers:
    """The processes that stay up for a round, by their command."""

    def __init__(self):
        self.by_command = {}

    def of(self, peer, job):
        command = tuple(map(str, peer.command_for(job)))
        if command not in self.by_command:
            self.by_command[command] = Server(command)
        return self.by_command[command]

    def stop(self):
        for server in self.by_command.values():
            server.stop()


def warm_seconds(peer, job, servers, turns):
    server = servers.of(peer, job)
    server.ask(peer.line(job, 0))
    return statistics.median(server.ask(peer.line(job, turn))[1] for turn in range(1, turns + 1))


def measure_round(number, peers, jobs, turns, title):
    runs, servers = [], Servers()
    try:
        for at, job in enumerate(jobs):
            if sys.stderr.isatty():
                print(f"\r{title}, {job.name:30}", end="", file=sys.stderr)
            shift = (number + at) % len(peers)
            for peer in peers[shift:] + peers[:shift]:
                answer, cold, memory = peer.cold(job)
                if not answer.error:
                    warm = warm_seconds(peer, job, servers, turns)
                    runs.append(Run(peer.name, job.name, number, cold, warm, memory, answer))
    finally:
        servers.stop()
        if sys.stderr.isatty():
            print(file=sys.stderr)
    return runs


def measure(peers, jobs, rounds, turns):
    """After each round, all runs so far; Ctrl-C ends with the rounds that are whole."""
    runs = []
    for number in range(rounds):
        try:
            runs += measure_round(number, peers, jobs, turns, f"round {number + 1} of {rounds}")
        except KeyboardInterrupt:
            if number == 0:
                raise
            return
        yield runs

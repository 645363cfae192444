#!/usr/bin/env python3
"""Checks that the manifests of examples/kubernetes fit each other, the webhook's options and the recorded request.

  check_manifests.py GPUMEM_WEBHOOK
Exit code 77 (skipped) without PyYAML.
"""

import json
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("PyYAML is missing (Debian: python3-yaml): the manifests are not checked")
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
faults = []


def expect(holds, fault):
    if not holds:
        faults.append(fault)


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def one(manifests, kind):
    found = [manifest for manifest in manifests if manifest["kind"] == kind]
    expect(len(found) == 1, f"there must be one {kind}, not {len(found)}")
    return found[0]


def check_deployment(manifests, options):
    deployment = one(manifests, "Deployment")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        expect(one(manifests, kind)["spec"]["selector"]["matchLabels"] == labels, f"the {kind} selects other pods")
    service = one(manifests, "Service")
    expect(service["spec"]["selector"] == labels, "the Service selects other pods")
    pod = template["spec"]
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    expect(service["spec"]["ports"][0]["targetPort"] in ports, "the Service's target port is not a port of the container")
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    expect(set(mounts) == volumes, "volumes and mounts differ")
    values = dict(argument.split("=", 1) for argument in container["args"])
    for option, value in values.items():
        expect(option in options, f"gpumem-webhook has no option {option}")
        if value.startswith("/"):
            expect(any(value == path or value.startswith(path + "/") for path in mounts.values()),
                   f"{option}={value} is on no volume")
    expect(int(values["--port"]) == ports["https"], "--port is not the container's port")
    for probe in ("readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        expect((get["path"], get["scheme"], get["port"]) == ("/healthz", "HTTPS", "https"), f"the {probe} asks elsewhere")
    certificate = one(manifests, "Certificate")
    secret = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v][0]
    expect(certificate["spec"]["secretName"] == secret, "the certificate is in another secret")
    name = "{name}.{namespace}.svc".format(**service["metadata"])
    expect(name in certificate["spec"]["dnsNames"], "the certificate is not for the Service")
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace", manifest["metadata"]["name"])
        expect(namespace == "gpumem", f"the {manifest['kind']} is in the namespace {namespace}")
    return service, certificate


def check_configuration(service, certificate):
    configuration = one(documents("configuration.yaml"), "MutatingWebhookConfiguration")
    injected = configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    expect(injected == "{namespace}/{name}".format(**certificate["metadata"]), "the CA is another certificate's")
    webhook = configuration["webhooks"][0]
    target = webhook["clientConfig"]["service"]
    expect((target["name"], target["namespace"]) == (service["metadata"]["name"], service["metadata"]["namespace"]),
           "the configuration names another Service")
    expect(target["port"] == service["spec"]["ports"][0]["port"], "the configuration names another port")
    expect(target["path"] == "/mutate", "the configuration names another path")
    expect(webhook["admissionReviewVersions"] == ["v1"], "the webhook speaks v1 only")
    expect(webhook["sideEffects"] == "None", "the webhook has no side effects")
    expect(7 < webhook["timeoutSeconds"] <= 30, "the API server must wait longer than 5 s and 2 s")


def check_pod(webhook_help):
    pod = one(documents("pod.yaml"), "Pod")
    request = json.loads((FOLDER / "review.json").read_text())["request"]
    recorded = request["object"]
    for field in ("name", "namespace", "labels", "annotations"):
        expect(recorded["metadata"][field] == pod["metadata"][field], f"review.json has other {field} than pod.yaml")
    for field in ("name", "image", "command", "resources"):
        expect(recorded["spec"]["containers"][0][field] == pod["spec"]["containers"][0][field],
               f"review.json has another {field} than pod.yaml")
    target = pod["metadata"]["annotations"]["gpumem.io/for"]
    expect(target in webhook_help, f"gpumem-webhook knows no target {target}")


def main():
    webhook_help = subprocess.run([sys.argv[1], "--help"], check=True, capture_output=True, text=True).stdout
    options = set(re.findall(r"--[a-z][a-z-]*", webhook_help))
    check_configuration(*check_deployment(documents("webhook.yaml"), options))
    check_pod(webhook_help)
    for option in set(re.findall(r"(?<![-|])--[a-z][a-z-]*", (FOLDER / "README.md").read_text())):
        kubectl_and_curl = {"--from-file", "--dry-run", "--data-binary", "--build", "--target", "--help"}
        expect(option in options | kubectl_and_curl, f"README.md names {option}, which nobody knows")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

"""The manifests of docs/deploy/kuberay: their names, ports, mounts and keys agree with each other, with the
documentation, and with what the program reads."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from built import command_path

import tacit

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/deploy/kuberay"
IMAGES = {"tacit:0.1.0": "docs/deploy/Containerfile", "tacit-ray:0.1.0": "docs/deploy/kuberay/Containerfile"}
PARTY = {path.name for path in [FOLDER / "driver.py", FOLDER / "party.toml"]} | {"study.toml"}


def objects(kind: str) -> dict[str, Any]:
    """All objects of a kind, by name."""
    every = [one for path in FOLDER.glob("*.yaml") for one in yaml.safe_load_all(path.read_text()) if one]
    named = [(one["metadata"]["name"], one) for one in every if one["kind"] == kind]
    assert len(dict(named)) == len(named)
    return dict(named)


def clusters() -> dict[str, Any]:
    job, cluster = objects("RayJob")["tacit-run"], objects("RayCluster")["tacit-cluster"]
    return {"rayjob": job["spec"]["rayClusterSpec"], "raycluster": cluster["spec"]}


def pods() -> dict[str, Any]:
    """The specification of every pod."""
    found = {"gate": objects("Deployment")["tacit-gate"]["spec"]["template"]}
    for name, cluster in clusters().items():
        found[f"{name} head"] = cluster["headGroupSpec"]["template"]
        found[f"{name} workers"] = cluster["workerGroupSpecs"][0]["template"]
    return found


def containers(pod: Any) -> list[Any]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def secrets() -> dict[str, set[str]]:
    """Keys of each secret, as docs/scale.md has them made: a manifest of secrets would put its own over them."""
    made = r"kubectl create secret generic (\S+) --from-file=(\S+)$"
    found = {name: {key} for name, key in re.findall(made, (ROOT / "docs/scale.md").read_text(), re.M)}
    assert found and not objects("Secret")
    return found


def settings() -> dict[str, Any]:
    """What party.toml says, as far as lines `name = "text"` say it."""
    return dict(re.findall(r'^(\w+) +?= +"([^"]*)"$', (FOLDER / "party.toml").read_text(), re.M))


def test_yaml_is_clean() -> None:
    rules = "{extends: default, rules: {line-length: {max: 120}, octal-values: disable}}"
    lint = [sys.executable, "-m", "yamllint", "--strict", "-d", rules, str(FOLDER)]
    done = subprocess.run(lint, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_images_have_recipes() -> None:
    used = {container["image"] for pod in pods().values() for container in containers(pod)}
    assert used == set(IMAGES)
    scale = (ROOT / "docs/scale.md").read_text()
    for image, recipe in IMAGES.items():
        assert f"docker build -f {recipe} -t {image} dist" in scale
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)
    assert version and all(image.endswith(f":{version[1]}") for image in used)


def test_ray_is_of_one_version() -> None:
    recipe = (FOLDER / "Containerfile").read_text()
    versions = {cluster["rayVersion"] for cluster in clusters().values()}
    assert versions == set(re.findall(r"^ARG RAY=(.*)$", recipe, re.M))


def test_mounts_are_of_volumes_and_keys_of_secrets() -> None:
    keys = secrets()
    claims = objects("PersistentVolumeClaim")
    for name, pod in pods().items():
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        mounts = [mount for container in containers(pod) for mount in container.get("volumeMounts", [])]
        assert {mount["name"] for mount in mounts} == set(volumes), name
        for volume in volumes.values():
            assert volume.get("secret", {}).get("secretName", "tacit-gate") in keys
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "tacit-ledger") in claims
        for init in pod["spec"].get("initContainers", []):
            # It copies every key of the secret to where the program reads it.
            copied = {Path(word).name for word in init["command"] if word.startswith("/secret/")}
            secret = next(volume["secret"]["secretName"] for volume in volumes.values() if "secret" in volume)
            assert copied == keys[secret]
    assert claims["tacit-ledger"]["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_workers_have_nothing_of_the_party() -> None:
    for name, pod in pods().items():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        if "workers" in name:
            assert "volumes" not in pod["spec"] and pod["spec"]["automountServiceAccountToken"] is False
            assert "env" not in pod["spec"]["containers"][0]


def test_the_party_file_is_one_and_its_files_are_mounted(tmp_path: Path, command: Any) -> None:
    party = tacit.Party.load(FOLDER / "party.toml")
    assert party.name == settings()["as"]
    said = settings()
    for name, pod in pods().items():
        if "head" not in name:
            continue
        mounted = {mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        for key in ["study", "identity", "ledger", "report"]:
            assert str(Path(said[key]).parent) in mounted, key
        assert Path(said["identity"]).name in secrets()["tacit-coordinator"]
    assert Path(said["study"]).name in PARTY
    files = "".join(f" --from-file={name}" for name in sorted(PARTY))
    create = f"kubectl create configmap tacit-party{files}"
    assert create in (ROOT / "docs/scale.md").read_text()


def test_ports_agree() -> None:
    said = settings()
    gate = pods()["gate"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in gate["ports"]}
    words = dict(word.lstrip("-").split("=", 1) for word in gate["args"] if "=" in word)
    flags = {"public": "listen", "inside": "inside"}
    assert {name: int(words[flag].rsplit(":", 1)[1]) for name, flag in flags.items()} == ports
    for service, port in [("tacit-gate", "public"), ("tacit-gate-inside", "inside")]:
        spec = objects("Service")[service]["spec"]
        assert spec["selector"] == pods()["gate"]["metadata"]["labels"]
        assert [(one["port"], one["targetPort"]) for one in spec["ports"]] == [(ports[port], port)]
    assert said["gate"] == f"tacit-gate-inside:{ports['inside']}" and said["expose"] == "gate"
    policies = objects("NetworkPolicy")
    allowed = {
        name: [[port["port"] for port in rule.get("ports", [])] for rule in one["spec"].get("ingress", [])]
        for name, one in policies.items()
    }
    assert allowed["tacit-gate"] == [[ports["public"]], [ports["inside"]]]
    listens = int(said["listen"].rsplit(":", 1)[1])
    assert allowed["tacit-head-from-gate"] == [[listens]]
    assert allowed["tacit-workers-from-gate"] == [[32768, 52366]]
    for name, pod in pods().items():
        if "head" in name:
            own = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
            assert own["coordinator"] == listens
            # KubeRay makes the head's service of these alone, and asks it for a port of the name `dashboard`.
            assert {"gcs-server": 6379, "dashboard": 8265}.items() <= own.items(), name
            assert allowed["tacit-operator"] == [[own["dashboard"]]]
    assert allowed["tacit-closed"] == [] and policies["tacit-closed"]["spec"]["podSelector"] == {}


def test_the_gate_reaches_no_port_of_ray() -> None:
    ranges = [
        range(port["port"], port["endPort"] + 1)
        for rule in objects("NetworkPolicy")["tacit-workers-from-gate"]["spec"]["ingress"]
        for port in rule["ports"]
    ]
    for group in [group for cluster in clusters().values() for group in cluster["workerGroupSpecs"]]:
        ports = {name: int(port) for name, port in group["rayStartParams"].items() if name.endswith("-port")}
        pinned = {"node-manager-port", "object-manager-port", "min-worker-port", "max-worker-port"}
        assert pinned <= ports.keys()
        # 52365 is where KubeRay asks an agent how it is.
        assert not any(port in one for port in [*ports.values(), 52365] for one in ranges)


STAND_IN = """
import os
class TacitError(Exception): pass
class InputError(TacitError): pass
class RefusedError(TacitError): pass
class DeviatedError(TacitError): pass
class PeerError(TacitError): pass
class Ray:
    def __init__(self, *_, **__): pass
class Party:
    study = type("Study", (), {"hash": "ab" * 32})
    text = "the report"
    @staticmethod
    def load(_): return Party()
    def run(self, launcher):
        print("ran", flush=True)
        if os.environ["FAULT"] == "killed": os._exit(137)
        if os.environ["FAULT"]: raise globals()[os.environ["FAULT"]]("said\\nof it")
        return self
"""


class Job:
    """The driver as a job runs it, with a stand-in for tacit, and a volume that stays."""

    def __init__(self, folder: Path) -> None:
        (folder / "volume").mkdir(parents=True)
        (folder / "tacit.py").write_text(STAND_IN)
        source = (FOLDER / "driver.py").read_text()
        volume = str(Path(settings()["ledger"]).parent)
        assert f'"{volume}"' in source
        self.folder, self.driver = folder, folder / "driver.py"
        self.driver.write_text(source.replace(f'"{volume}"', repr(str(folder / "volume"))))

    def begins(self, fault: str, tries: int = 2) -> tuple[int, bool, str]:
        """Its code, whether a run was begun, and what it says."""
        said = {"RAY_ADDRESS": "x:1", "TACIT_WORKERS": "1", "TACIT_TRIES": str(tries), "FAULT": fault}
        env = os.environ | said | {"PYTHONPATH": str(self.folder)}
        done = subprocess.run([sys.executable, self.driver], env=env, capture_output=True, text=True)
        return done.returncode, done.stdout.startswith("ran\n"), done.stdout + done.stderr


@pytest.mark.parametrize("lost", ["PeerError", "killed"])
def test_what_begins_a_third_time_ends_for_a_person(tmp_path: Path, lost: str) -> None:
    """Two matches of a run are charged once, the third again: what starts the driver does not decide that."""
    job = Job(tmp_path / "job")
    assert all(job.begins(lost)[:2] == (137 if lost == "killed" else 1, True) for _ in range(2))
    for _ in range(2):
        code, ran, said = job.begins("")
        assert (code, ran) == (1, False) and "NO RESULT, and no try again" in said and "TACIT_TRIES=3" in said
    # A person allows one more, and it has its result; what starts it then has nothing to do.
    code, ran, said = job.begins("", tries=3)
    assert (code, ran) == (0, True) and "the report" in said
    code, ran, said = job.begins("", tries=3)
    assert (code, ran) == (0, False) and "answered before" in said


@pytest.mark.parametrize("fault", ["InputError", "RefusedError", "DeviatedError"])
def test_what_only_a_person_mends_is_not_tried_again(tmp_path: Path, fault: str) -> None:
    job = Job(tmp_path / "job")
    code, ran, said = job.begins(fault)
    assert (code, ran) == (1, True) and "NO RESULT, and no try again: said" in said
    # The job failed, so the operator starts it once more: that ends at once, as a failure, and says why.
    code, ran, said = job.begins("")
    assert (code, ran) == (1, False) and "no try again: said of it; TACIT_TRIES=3" in said


def test_an_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    job = Job(tmp_path / "job")
    assert job.begins("")[:2] == (0, True)
    assert job.begins("")[:2] == (0, False)


def test_a_lost_head_is_a_job_that_failed() -> None:
    """In HTTPMode KubeRay submits a job again to the head that comes back, whatever `backoffLimit` is."""
    job = objects("RayJob")["tacit-run"]["spec"]
    assert job["submissionMode"] == "SidecarMode" and "submitterConfig" not in job
    assert pods()["rayjob head"]["spec"]["restartPolicy"] == "Never"
    for name, pod in pods().items():
        if "head" in name:
            env = {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}
            # With every cluster that KubeRay starts there is one try, and no more clusters than tries.
            assert int(env["TACIT_TRIES"]) == job["backoffLimit"] + 1 == 2
        # What a mount opens to the group of the ledger's volume, the state key among it, tacit refuses.
        if any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", [])):
            assert pod["spec"]["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"


def test_labels_of_policies_are_of_pods() -> None:
    labels = {pod["metadata"]["labels"]["app"] for pod in pods().values()}
    text = (FOLDER / "networkpolicy.yaml").read_text()
    named = set(re.findall(r"app: (\S+)", text)) | {
        name for names in re.findall(r"values: \[(.*?)\]", text) for name in names.split(", ")
    }
    assert named == labels == {"tacit-gate", "tacit-head", "tacit-worker"}


def test_autoscaling_is_on_in_one_and_off_in_the_other() -> None:
    groups = {name: cluster["workerGroupSpecs"][0] for name, cluster in clusters().items()}
    assert clusters()["rayjob"]["enableInTreeAutoscaling"] is True
    assert groups["rayjob"]["minReplicas"] < groups["rayjob"]["maxReplicas"]
    assert "enableInTreeAutoscaling" not in clusters()["raycluster"]
    assert {groups["raycluster"][key] for key in ["replicas", "minReplicas", "maxReplicas"]} == {8}


def test_the_gate_of_the_manifest_starts(tmp_path: Path) -> None:
    """With its own flags, but for addresses and the place of its key."""
    key = tacit.keygen(tmp_path / "gate.key")
    words = []
    for word in pods()["gate"]["spec"]["containers"][0]["args"]:
        word = re.sub(r"=0\.0\.0\.0:\d+$", "=127.0.0.1:0", word)
        words.append(word.replace("/var/run/secrets/tacit", str(tmp_path)))
    gate = subprocess.Popen([command_path(), *words], stderr=subprocess.PIPE, text=True)
    try:
        assert gate.stderr is not None
        ready = json.loads(gate.stderr.readline())
        assert ready["event"] == "ready" and ready["key"] == key.fingerprint
        gate.send_signal(signal.SIGTERM)
        assert gate.wait(60) == 0
        assert json.loads(gate.stderr.read().splitlines()[-1])["event"] == "stopped"
    finally:
        gate.kill()
        gate.wait()


def test_the_entrypoint_is_a_driver_that_calls_what_there_is() -> None:
    job = objects("RayJob")["tacit-run"]["spec"]
    program, script = job["entrypoint"].split()
    assert program == "python" and Path(script).parent == Path(settings()["study"]).parent
    assert Path(script).name in PARTY
    source = (FOLDER / "driver.py").read_text()
    compile(source, "driver.py", "exec")
    read = set(re.findall(r'os\.environ\["(\w+)"\]', source))
    env = {one["name"] for one in pods()["rayjob head"]["spec"]["containers"][0]["env"]}
    # KubeRay says where the cluster is.
    assert read == env | {"RAY_ADDRESS"}
    if not hasattr(tacit, "Ray"):
        pytest.fail("driver.py uses tacit.Ray")
    inspect.signature(tacit.Ray).bind("10.0.0.5:6379", workers=32)
    inspect.signature(tacit.Party.run).bind(None, launcher=None)

"""Starts munge, slurmctld and three nodes on this host, runs sweeps there as a user would, disturbs them, and compares. See tests/slurm/run."""
import json, os, shutil, socket, subprocess, sys, tempfile, time
from pathlib import Path

PUDICA, KEEP = sys.argv[1], sys.argv[2]
ROOT = Path(KEEP or tempfile.mkdtemp(prefix="pudica-slurm-")).resolve()
ROOT.mkdir(parents=True, exist_ok=True)
BEGUN = time.time()

RECIPE = """
title = "On a cluster"
[settings]
n = 4
model.d = 16
train = { batch = 64, steps = 4000 }
track.every = 500
eval.batches = 2
measure = { batches = 2, draws = 2 }
[[quick.sweep]]
name = "all"
grid.target = ["parity", "first"]
grid.seed = "0..4"
"""

# Requeued jobs wait until their credentials have expired: two minutes by default.
CONFIG = """
ClusterName=pudica
SlurmctldHost={host}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
SlurmUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=2,sched_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=20
KillWait=5
MaxArraySize=101
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=test Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=1000 State=UNKNOWN"
# Each has one core, so that no two tasks share one.
NODES = ["alpha", "beta", "gamma"]

processes = {}


def start(name, *command):
    log = open(ROOT / f"{name}.out", "a")
    processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT)


# A node has a name and processes of its own, which nobody outside of it sees, and which are all gone the moment that `unshare` is killed.
APART = ["unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"]


def start_node(name):
    start(name, *APART, "sh", "-c", f"hostname {name} && slurmd -D -c -N {name} -f {ROOT}/slurm.conf & wait")


def node_states():
    return dict(line.split() for line in run("sinfo", "-h", "-N", "-o", "%N %T", check=False).splitlines())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    if check and done.returncode:
        raise SystemExit(f"{command} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
    return done.stdout


def until(what, condition, seconds=90, pause=0.3):
    end = time.time() + seconds
    while time.time() < end:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise SystemExit(f"waited {seconds} s in vain: {what}\n{run('squeue', '-a', check=False)}\n{run(PUDICA, 'status', 'out', check=False)}\n{logs()}")


def logs():
    return "\n".join(f"--- {path}\n{path.read_text()[-1500:]}" for path in sorted((ROOT / "out/slurm").glob("*.log")))


def say(text):
    print(f"  {time.time() - BEGUN:5.1f} s  {text}", flush=True)


def at_work(out="out"):
    """The processes of a sweep by their jobs, as they tell it."""
    return {one["job"]: one for one in status(out)["processes"] if "job" in one}


def has_begun(one):
    return any(run["step"] > 0 for run in one["at"])


def send(signal, one):
    """To a process, by its number on its node."""
    run("nsenter", f"--pid=/proc/{processes[one['host']].pid}/ns/pid_for_children", "kill", f"-{signal}", one["pid"])


def status(out="out"):
    return json.loads(run(PUDICA, "status", out, "--json"))


def in_queue():
    return run("squeue", "-h", "-r", "-o", "%i").split()


def numbers(out):
    """Every byte of every run but times, and digests, which are of times as well: by run, its files."""
    found = {}
    for path in sorted((ROOT / out / "runs").iterdir()):
        summary = json.loads((path / "summary.json").read_text())
        summary.pop("seconds")
        for digest in ["metrics_digest", "summary_digest"]:
            summary["files"].pop(digest)
        lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            line.pop("seconds", None)
        files = {name: (path / name).read_bytes() for name in ["config.json", "weights.safetensors"]}
        found[path.name] = (json.dumps(summary), json.dumps(lines), files, sorted(p.name for p in path.iterdir()))
    return found


host = socket.gethostname().split(".")[0]
ENVIRONMENT = dict(os.environ, SLURM_CONF=str(ROOT / "slurm.conf"), XDG_CONFIG_HOME=str(ROOT / "config"), RAYON_NUM_THREADS="1")
(ROOT / "state").mkdir(exist_ok=True)
nodes = "\n".join(NODE.format(name=name, host=host, port=free_port()) for name in NODES)
(ROOT / "slurm.conf").write_text(CONFIG.format(host=host, port=free_port(), nodes=nodes, names=",".join(NODES), root=ROOT))
(ROOT / "plain.toml").write_text(RECIPE)
ROOT.chmod(0o755)


def begin():
    key = ROOT / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    start("munged", "munged", "--force", "--foreground", f"--key-file={key}", f"--socket={ROOT}/munge.socket", f"--pid-file={ROOT}/munge.pid",
          f"--log-file={ROOT}/munge.log", f"--seed-file={ROOT}/munge.seed")
    until("munge", lambda: (ROOT / "munge.socket").exists(), 20)
    start("slurmctld", "slurmctld", "-D", "-c", "-f", str(ROOT / "slurm.conf"))
    for name in NODES:
        start_node(name)
    until("idle nodes", lambda: list(node_states().values()) == ["idle"] * len(NODES), 60)
    say(f"Slurm is up: {run('sinfo', '--version').strip()}")


# Two tasks of one core; a minute's limit, of which a task is told 20 s before.
OPTIONS = ["--engine", "slurm", "--at-once", "2", "--cpus", "1", "--time", "1", "--partition", "test", "--jobs", "1"]


def disturbed_sweep():
    run(PUDICA, "run", "plain.toml", "--out", "straight")
    say("one process has made the sweep")
    submit = [PUDICA, "run", "plain.toml", "--out", "out", *OPTIONS]
    script = run(*submit, "--dry-run")
    assert "#SBATCH --array=1-" in script and "--signal=B:USR1@20" in script and not (ROOT / "out").exists(), script
    said = run(*submit)
    assert "submitted: job" in said and "pudica status" in said, said
    say(said.splitlines()[0])
    said = run(*submit)
    assert "nothing to submit" in said, said
    first = until("two tasks at work", lambda: len(at_work()) == 2 and at_work())
    # One is told to end: it saves, is requeued, and goes on.
    told, killed = sorted(first)
    until("a run under way", lambda: any(map(has_begun, at_work().values())))
    send("USR1", first[told])
    until(f"{told} asks for another start", lambda: "asked Slurm to start" in (ROOT / f"out/slurm/{told}.log").read_text())
    # Told between two runs, it has nothing to save; within one, it must go on from there.
    saved = [one["label"] for one in json.loads((ROOT / "out/sweep.json").read_text())["runs"]
             if (ROOT / "out/runs" / one["id"] / "checkpoint.safetensors").exists()]
    say(f"job {told} was told to end, saved, and was requeued")
    # The other is killed without a word. Slurm does not start it again; the same command does, later.
    send("KILL", first[killed])
    until(f"{killed} is gone", lambda: killed not in in_queue())
    say(f"job {killed} was killed")
    return submit, told, saved


def same_numbers(out):
    ours, theirs = numbers(out), numbers("straight")
    assert ours == theirs, f"other numbers: {[run for run in theirs if ours.get(run) != theirs[run]]}"
    say(f"{len(ours)} runs, byte for byte those of one process")


def finish(submit, told, saved):
    until("the array and its report end", lambda: not in_queue(), 150)
    again = (ROOT / f"out/slurm/{told}.log").read_text().split("asked Slurm to start")[1]
    made = [label for label in saved if f"] {label}:" in again]
    assert (made or "made before" in again) and all(f"continuing {label} from step" in again for label in made), logs()
    assert (ROOT / "out/report.html").exists(), "the last job writes the report"
    before = status()
    say(f"the queue is empty: {before['finished']} of {before['runs']} runs finished")
    assert before["finished"] < 8, "the killed task was to leave something"
    said = run(*submit)
    say(said.splitlines()[0])
    assert "submitted: job" in said, said
    until("all runs", lambda: status()["finished"] == 8 and not in_queue(), 120)
    same_numbers("out")
    said = run(*submit)
    assert "all its runs are there" in said, said


def claims(out, epoch, owner=""):
    """The runs whose claims of this epoch are the owner's."""
    paths = (ROOT / out / ".work").glob(f"*.{epoch}")
    return {path.name.split(".")[0] for path in paths if path.read_text().startswith(owner)}


def under_way(out):
    """A task within a run, its process, and the beginning of its name in claims."""
    for job, one in at_work(out).items():
        owner = f"{one['host']}-{one['pid']}-"
        metrics = [ROOT / out / "runs" / run / "metrics.jsonl" for run in claims(out, 0, owner)]
        if any(path.exists() and path.stat().st_size for path in metrics):
            return job, one, owner
    return None


def dying_node():
    """A node dies without a word while a task is at work there. Slurm notices, and starts the task on another one, which takes the run over."""
    said = run(PUDICA, "run", "plain.toml", "--out", "dying", *OPTIONS)
    say(said.splitlines()[0])
    job, dead, owner = until("a run under way", lambda: under_way("dying"), pause=0.05)
    processes[dead["host"]].kill()
    processes[dead["host"]].wait()
    left = claims("dying", 0, owner)
    assert left, "the node was to die within a run"
    say(f"node {dead['host']} has died with job {job}")
    until("Slurm notices", lambda: node_states()[dead["host"]].startswith("down"), 60)
    say("Slurm has noticed")
    taken = until("the claim is taken over", lambda: claims("dying", 1), pause=0.05)
    again = at_work("dying")[job]
    assert taken == left and again["host"] != dead["host"] and again["restarts"] == 1, f"{taken} of {left}, {again}"
    say(f"job {job} was started again on {again['host']} and has taken its run over")
    until("the array ends", lambda: not [task for task in in_queue() if task.split("_")[0] == job.split("_")[0]], 120)
    same_numbers("dying")
    stray = sorted(path.name for path in (ROOT / "dying/.work").iterdir())
    assert not stray, f"left behind: {stray}"


def limited():
    """A task that will reach its time limit, and its log."""
    said = run(PUDICA, "run", "plain.toml", "seed=7", "target=parity", "train.steps=2000000", "--out", "long", "--engine", "slurm", "--time", "1")
    job = f"{said.split()[2].strip(',')}_1"
    return job, ROOT / f"long/slurm/{job}.log"


def kill_controller(job):
    """Without a word. It knows of a job what it has saved, some seconds late; the job's process goes on while nobody schedules."""
    until("a run under way", lambda: job in at_work("long") and has_begun(at_work("long")[job]))
    saved, before = ROOT / "state/job_state", at_work("long")[job]
    until("a state that was saved a while ago", lambda: saved.exists() and time.time() - saved.stat().st_mtime > 7)
    processes["slurmctld"].kill()
    processes["slurmctld"].wait()
    time.sleep(2)
    start("slurmctld", "slurmctld", "-D", "-f", str(ROOT / "slurm.conf"))
    until("the controller answers", lambda: "UP" in run("scontrol", "ping", check=False))
    after = until("it goes on", lambda: at_work("long")[job]["beat"] > before["beat"] and at_work("long")[job])
    assert after["pid"] == before["pid"] and job in in_queue(), f"{before}, {after}"
    say(f"the controller was killed and started again; job {job} has gone on meanwhile")


def goes_on_and_is_stopped(log):
    """It saves, is requeued and goes on; what `pudica stop` ends stays ended, and is saved."""
    until("the time limit and another start", lambda: log.exists() and "continuing parity" in log.read_text(), 120)
    assert "asked Slurm to start" in log.read_text()
    say("a task at its time limit saved, was requeued and goes on")
    until("it is at work again", lambda: status("long")["at_work"] == 1)
    assert "cancelled" in run(PUDICA, "stop", "long")
    until("the queue is empty", lambda: not in_queue(), 60)
    time.sleep(8)
    assert not in_queue(), "it has started itself again"
    assert "was cancelled" in log.read_text() and "none of its jobs" in run(PUDICA, "stop", "long")
    left = status("long")
    assert left["processes"] == [] and (left["finished"], left["interrupted"]) == (0, 1), left
    say("a job that was stopped has saved and is gone")


ok = False
try:
    begin()
    finish(*disturbed_sweep())
    # A minute's limit takes its time: the rest happens meanwhile.
    job, log = limited()
    kill_controller(job)
    dying_node()
    goes_on_and_is_stopped(log)
    ok = True
finally:
    for process in processes.values():
        process.kill()
        process.wait()
    if not ok:
        print(f"kept for a look: {ROOT}")
    elif not KEEP:
        shutil.rmtree(ROOT, ignore_errors=True)

"""Starts munge, slurmctld and slurmd on this host, runs a sweep there as a user would, disturbs it, and compares. See tests/slurm/run."""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, time
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
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
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
KillWait=5
MaxArraySize=101
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""

processes = []


def start(*command):
    log = open(ROOT / (Path(command[0]).name + ".out"), "w")
    processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    if check and done.returncode:
        raise SystemExit(f"{command} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
    return done.stdout


def until(what, condition, seconds=90):
    end = time.time() + seconds
    while time.time() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise SystemExit(f"waited {seconds} s in vain: {what}\n{run('squeue', '-a', check=False)}\n{run(PUDICA, 'status', 'out', check=False)}\n{logs()}")


def logs():
    return "\n".join(f"--- {path}\n{path.read_text()[-1500:]}" for path in sorted((ROOT / "out/slurm").glob("*.log")))


def say(text):
    print(f"  {time.time() - BEGUN:5.1f} s  {text}", flush=True)


def pids_at_work():
    """Of this sweep's processes, by what they tell."""
    return {one["job"]: one["pid"] for one in status()["processes"] if "job" in one}


def status():
    return json.loads(run(PUDICA, "status", "out", "--json"))


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
for name in ["state", "spool"]:
    (ROOT / name).mkdir(exist_ok=True)
(ROOT / "slurm.conf").write_text(CONFIG.format(host=host, port=free_port(), node_port=free_port(), root=ROOT))
(ROOT / "plain.toml").write_text(RECIPE)
ROOT.chmod(0o755)


def begin():
    key = ROOT / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    start("munged", "--force", "--foreground", f"--key-file={key}", f"--socket={ROOT}/munge.socket", f"--pid-file={ROOT}/munge.pid",
          f"--log-file={ROOT}/munge.log", f"--seed-file={ROOT}/munge.seed")
    until("munge", lambda: (ROOT / "munge.socket").exists(), 20)
    start("slurmctld", "-D", "-c", "-f", str(ROOT / "slurm.conf"))
    start("slurmd", "-D", "-c", "-N", host, "-f", str(ROOT / "slurm.conf"))
    until("an idle node", lambda: "idle" in run("sinfo", "-h", "-o", "%T", check=False), 60)
    say(f"Slurm is up: {run('sinfo', '--version').strip()}")


def disturbed_sweep():
    run(PUDICA, "run", "plain.toml", "--out", "straight")
    say("one process has made the sweep")
    # 8 runs in two tasks of one core; a minute's limit, of which a task is told 20 s before.
    submit = [PUDICA, "run", "plain.toml", "--out", "out", "--engine", "slurm", "--at-once", "2", "--cpus", "1", "--time", "1",
              "--partition", "test", "--jobs", "1"]
    script = run(*submit, "--dry-run")
    assert "#SBATCH --array=1-" in script and "--signal=B:USR1@20" in script and not (ROOT / "out").exists(), script
    said = run(*submit)
    assert "submitted: job" in said and "pudica status" in said, said
    say(said.splitlines()[0])
    said = run(*submit)
    assert "nothing to submit" in said, said
    first = until("two tasks at work", lambda: len(pids_at_work()) == 2 and pids_at_work())
    # One is told to end: it saves, is requeued, and goes on.
    told, killed = sorted(first)
    until("a run under way", lambda: any(run["step"] > 0 for one in status()["processes"] for run in one["at"]))
    os.kill(first[told], signal.SIGUSR1)
    until(f"{told} asks for another start", lambda: "asked Slurm to start" in (ROOT / f"out/slurm/{told}.log").read_text())
    say(f"job {told} was told to end, saved, and was requeued")
    # The other is killed without a word. Slurm does not start it again; the same command does, later.
    os.kill(first[killed], signal.SIGKILL)
    until(f"{killed} is gone", lambda: killed not in run("squeue", "-h", "-r", "-o", "%i"))
    say(f"job {killed} was killed")
    restart_controller()
    return submit, told


def restart_controller():
    """Tasks go on while nobody schedules. (Killed outright, Slurm forgets what it did in its last seconds, and drains the node.)"""
    controller = next(process for process in processes if process.args[0] == "slurmctld")
    controller.terminate()
    controller.wait()
    time.sleep(2)
    start("slurmctld", "-D", "-f", str(ROOT / "slurm.conf"))
    until("the controller answers", lambda: "UP" in run("scontrol", "ping", check=False))
    say("the controller was stopped and started again")


def finish(submit, told):
    until("the array and its report end", lambda: not run("squeue", "-h", "-r", "-o", "%i").strip(), 150)
    assert "continuing" in (ROOT / f"out/slurm/{told}.log").read_text(), logs()
    assert (ROOT / "out/report.html").exists(), "the last job writes the report"
    before = status()
    say(f"the queue is empty: {before['finished']} of {before['runs']} runs finished")
    assert before["finished"] < 8, "the killed task was to leave something"
    said = run(*submit)
    say(said.splitlines()[0])
    assert "submitted: job" in said, said
    until("all runs", lambda: status()["finished"] == 8 and not run("squeue", "-h", "-r", "-o", "%i").strip(), 120)
    ours, theirs = numbers("out"), numbers("straight")
    assert ours == theirs, f"other numbers: {[run for run in theirs if ours.get(run) != theirs[run]]}"
    say("8 runs, byte for byte those of one process")
    said = run(*submit)
    assert "all its runs are there" in said, said


def limited_and_stopped():
    """A task that reaches its time limit saves, is requeued and goes on; what `pudica stop` ends stays ended, and is saved."""
    submit = [PUDICA, "run", "plain.toml", "seed=7", "target=parity", "train.steps=2000000", "--out", "long", "--engine", "slurm", "--time", "1"]
    said = run(*submit)
    log = ROOT / "long/slurm" / f"{said.split()[2].strip(',')}_1.log"
    empty = lambda: not run("squeue", "-h", "-r", "-o", "%i").strip()
    until("the time limit and another start", lambda: log.exists() and "continuing parity" in log.read_text(), 120)
    assert "asked Slurm to start" in log.read_text()
    say("a task at its time limit saved, was requeued and goes on")
    until("it is at work again", lambda: json.loads(run(PUDICA, "status", "long", "--json"))["at_work"] == 1)
    assert "cancelled" in run(PUDICA, "stop", "long")
    until("the queue is empty", empty, 60)
    time.sleep(8)
    assert empty(), "it has started itself again"
    assert "was cancelled" in log.read_text() and "none of its jobs" in run(PUDICA, "stop", "long")
    left = json.loads(run(PUDICA, "status", "long", "--json"))
    assert left["processes"] == [] and (left["finished"], left["interrupted"]) == (0, 1), left
    say("a job that was stopped has saved and is gone")


ok = False
try:
    begin()
    finish(*disturbed_sweep())
    limited_and_stopped()
    ok = True
finally:
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    if not ok:
        print(f"kept for a look: {ROOT}")
    elif not KEEP:
        shutil.rmtree(ROOT, ignore_errors=True)

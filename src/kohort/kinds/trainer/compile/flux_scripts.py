"""The scripts of a Flux training: one installs Flux beside the training, one starts the brokers and the command.

The image of the init container is a "view": Flux built by Spack under /opt/software, linked together under /opt/views.
Both are copied to a volume, and the training's container, which knows nothing of Flux, runs them from there.
"""

from __future__ import annotations

_INSTALL = """\
#!/bin/bash
# Copies Flux into the volume that the training's container mounts, and writes how its brokers find each other.
set -e
target=/mnt/flux
system=$target/config/etc/flux/system
mkdir -p "$target/view" "$system/cron.d" "$target/config/etc/flux/config" "$target/config/etc/curve"
mkdir -p "$target/config/run/flux" "$target/config/var/lib/flux"
echo "{hosts}" > "$system/hostlist"
cat > "$target/config/etc/flux/config/broker.toml" <<'END'
{broker}END
for view in /opt/views/._view/*; do
  cp -R "$view"/. "$target/view/"
done
cp -R /opt/software "$target/"
"""

_BROKER = """\
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = "tcp://{device}:%p"
default_connect = "tcp://%h.{domain}:%p"
hosts = [{{host = "{hosts}"}}]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "{queue}"
"""

_START = """\
#!/bin/bash
# Starts a Flux broker; the first one runs the command ($1) over all of them, or only waits if there is none.
base=/mnt/flux
view=$base/view
config=$base/config
cp -R "$base"/software/. /opt/software/

# Behind what the container has: a program that both have is the container's.
export PATH=$PATH:$view/bin
python=$(find "$view/lib" -maxdepth 1 -type d -name 'python3*' | head -n 1)
interpreter=$view/bin/$(basename "$python")
if [ -f "$interpreter" ]; then
  ln -sf "$interpreter" "$view/bin/python3"
fi
export PYTHONPATH=${{PYTHONPATH:-}}:$python/site-packages
export FLUX_RC_EXTRA=$view/etc/flux/rc1.d

# For those who look in from outside: the environment of the brokers.
cat > "$base/flux-view.sh" <<END
export PATH=$PATH
export PYTHONPATH=$PYTHONPATH
export LD_LIBRARY_PATH=${{LD_LIBRARY_PATH:-}}:$view/lib
export fluxsocket=local://$config/run/flux/local
END

certificate=$config/etc/curve/curve.cert
cp /curve/curve.cert "$certificate"
chown "$(id -u)" "$certificate"
chmod 600 "$certificate"

hosts=$(cat "$config/etc/flux/system/hostlist")
flux R encode --hosts="$hosts" {resources} > "$config/etc/flux/system/R"

export STATE_DIR=$config/var/lib/flux
export FLUX_OUTPUT_DIR=/tmp/fluxout
mkdir -p "$STATE_DIR" "$FLUX_OUTPUT_DIR"
options="-Scron.directory=$config/etc/flux/system/cron.d -Stbon.fanout=256 -Srundir=$config/run/flux \\
  -Sstatedir=$STATE_DIR -Slocal-uri=local://$config/run/flux/local -Slog-stderr-level=0 -Slog-stderr-mode=local"

if [ "$(hostname)" = "{leader}" ]; then
  if [ -z "$1" ]; then
    exec flux broker --config-path "$config/etc/flux/config" $options
  fi
  exec flux start -o --config "$config/etc/flux/config" $options flux run {flags} $1
fi
# The others try until the first one is up, and end when it does.
until flux start -o --config "$config/etc/flux/config" $options; do
  sleep 15
done
"""


def span(count: int) -> str:
    """The numbers from zero on: 0 or 0-4."""
    return "0" if count <= 1 else f"0-{count - 1}"


def broker(*, hosts: str, device: str, domain: str, queue: str) -> str:
    return _BROKER.format(hosts=hosts, device=device, domain=domain, queue=queue)


def init(*, hosts: str, broker: str) -> str:
    return _INSTALL.format(hosts=hosts, broker=broker)


def entrypoint(*, leader: str, nodes: int, tasks: int, devices: int) -> str:
    """`tasks` and `devices` are those of one node."""
    flags, resources = f"-N {nodes} -n {tasks * nodes}", f"--cores={span(tasks)}"
    if devices:
        flags, resources = f"{flags} -g {devices}", f"{resources} --gpu={span(devices)}"
    return _START.format(leader=leader, flags=flags, resources=resources)

# Measures the time from nothing to the first report: run in a fresh root by `scripts/dist-test.sh --first`.
say() { echo "  $*"; }

began=$(date +%s)
apt-get --quiet=2 update >/dev/null
# With what the package recommends: the default campaign uses it.
apt-get --quiet=2 install --yes /packages/new.deb >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }
installed=$(date +%s)
mkdir -p /root/work
cd /root/work
# Whatever the figures are worth on this machine.
cipherbench run >/tmp/run 2>/tmp/progress || [ $? -eq 1 ] || { cat /tmp/progress; exit 1; }
ended=$(date +%s)
find runs -name report.html | grep -q . || { cat /tmp/progress; exit 1; }
sed -n '2,/^$/p' /tmp/run | sed 's/^/  /'
# The reasons of failed trials.
sed -n 's/.*#[0-9]*: failed: //p' /tmp/progress | sed 's/ (about .*//' | sort | uniq -c
say "installed after $((installed - began)) s, first report after $((ended - began)) s"

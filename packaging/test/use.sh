# Installs the older package, uses it, and upgrades: run in a fresh root by scripts/dist-test.sh.
say() { echo "  $*"; }
fail() { echo "  FAILED: $*"; exit 1; }

apt-get --quiet=2 update >/dev/null
apt-get --quiet=2 install --yes --no-install-recommends /packages/old.deb >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }
dpkg-query --showformat='  installed ${Package} ${Version}, depends on ${Depends}\n' --show cipherbench
cipherbench --version | head -n 1

say "rights"
[ "$(stat -c '%U:%G %a' /etc/cipherbench)" = "root:cipherbench 750" ] || fail "/etc/cipherbench: $(stat -c '%U:%G %a' /etc/cipherbench)"
[ "$(stat -c '%U %a' /etc/cipherbench/agent.env)" = "root 640" ] || fail "agent.env: $(stat -c '%U %a' /etc/cipherbench/agent.env)"
[ "$(stat -c '%a' /var/lib/cipherbench)" = 755 ] || fail "/var/lib/cipherbench"
[ -z "$(find /etc/systemd/system -name 'cipherbench*')" ] || fail "a service is enabled"

say "a gateway, a run and a changed configuration"
mkdir -p /root/work
cd /root/work
cipherbench init gateway --peer 192.0.2.2 --local 192.0.2.1 >/dev/null
cp gateways/gw1/* /etc/cipherbench/
echo 'LABS=memory' > /etc/cipherbench/agent.env
cipherbench check quick >/dev/null || fail "check"
cat > first.yaml <<'Y'
campaign: first
lab: memory
title: The encryptor in memory
calibrate: off
duts: [cipherbench]
trials:
  - mrr: { frame: 1518 B, trials: 1, duration: 200 ms }
Y
# Whatever the figures are worth on this machine.
cipherbench run first.yaml >/tmp/run 2>&1 || [ $? -eq 1 ] || { cat /tmp/run; exit 1; }
find runs -name report.html | grep -q . || fail "the run has no report"
mkdir -p /var/lib/cipherbench/agent
cp -r runs /var/lib/cipherbench/agent/
find /root/work /var/lib/cipherbench /etc/cipherbench -type f -exec sha256sum {} + | sort -k 2 > /packages/before

say "upgrade"
apt-get --quiet=2 install --yes --no-install-recommends /packages/new.deb >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }
dpkg-query --showformat='  installed ${Package} ${Version}\n' --show cipherbench
find /root/work /var/lib/cipherbench /etc/cipherbench -type f -exec sha256sum {} + | sort -k 2 > /packages/after
diff /packages/before /packages/after || fail "the upgrade has changed runs, keys or configurations"
[ "$(stat -c '%a' /etc/cipherbench/gw1.key)" = 600 ] || fail "the key's mode"
cipherbench runs >/dev/null || fail "runs are not listed"

say "manual pages"
# A minimal root may leave them out when packages are unpacked; then they are read from the package.
mkdir /tmp/package
dpkg-deb --extract /packages/new.deb /tmp/package
for page in /tmp/package/usr/share/man/man1/*.1.gz; do
    said=$(MAN_KEEP_STDERR=1 man --warnings --local-file "$page" 2>&1 >/dev/null)
    [ -z "$said" ] || fail "$page: $said"
done
MANPATH=/tmp/package/usr/share/man man cipherbench-run | grep -q SYNOPSIS || fail "man cipherbench-run"

say "completion"
bash -c '
    . /usr/share/bash-completion/bash_completion
    _completion_loader cipherbench || [ $? -eq 124 ]
    compopt() { :; }
    COMP_WORDS=(cipherbench run --lab mem) COMP_CWORD=3
    _cipherbench cipherbench mem --lab
    [ "${COMPREPLY[*]}" = memory ]
' || fail "bash completes no lab"

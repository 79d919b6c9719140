# Starts the services, half configured and whole: run by the root's systemd (dist-test.service).
say() { echo "  $*"; }
fail() {
    echo "  FAILED: $*"
    systemctl status --no-pager --lines 30 'cipherbench*' || true
    exit 1
}
# Starts a service, which must fail and say a text.
must_fail() {
    if systemctl start "$1" 2>/tmp/start; then
        fail "$1 started"
    fi
    journalctl --sync || true
    said=$(journalctl --no-pager --output cat --unit "$1")
    for text in "$2" "$3"; do
        case $said in
        *"$text"*) ;;
        *) fail "$1 does not say \`$text\`: $said" ;;
        esac
    done
    systemctl reset-failed "$1"
    say "$1: $(echo "$said" | grep -m 1 '^error')"
}

exec 2>&1
ip link set lo up
ip link add w0 type veth peer name w1
ip address add 192.0.2.1/24 dev w0
ip link set w0 up
ip link set w1 up

say "half-configured"
must_fail cipherbench-encrypt@gw9 "there is no configuration /etc/cipherbench/gw9.yaml" "cipherbench init gateway"
must_fail cipherbench-kme "there is no configuration /etc/cipherbench/kme.yaml" "docs/kme.md"
systemctl stop cipherbench-closed@gw9
mv /etc/cipherbench/gw1.key /root/gw1.key
must_fail cipherbench-encrypt@gw1 "/etc/cipherbench/gw1.key cannot be read" "cipherbench init gateway"
mv /root/gw1.key /etc/cipherbench/gw1.key

say "a gateway"
systemctl start cipherbench-encrypt@gw1 || fail "the gateway does not start"
systemctl is-active --quiet cipherbench-encrypt@gw1 cipherbench-closed@gw1 || fail "the gateway does not run"
ip -brief link show cb0 || fail "there is no tunnel"
journalctl --no-pager --output cat --unit cipherbench-encrypt@gw1 | grep -m 1 '^ready' || fail "it is not ready"
systemctl restart cipherbench-encrypt@gw1 || fail "the gateway does not restart"
systemctl stop cipherbench-encrypt@gw1
nft list tables | grep -q cipherbench-cb0 || fail "the networks are open although only the encryptor was stopped"
systemctl start cipherbench-encrypt@gw1
systemctl stop cipherbench-closed@gw1
! systemctl is-active --quiet cipherbench-encrypt@gw1 || fail "the encryptor survives its barrier"
! nft list tables | grep -q cipherbench-cb0 || fail "the networks stay closed"

say "a gateway with static keys that runs as its user"
mkdir /etc/cipherbench/gw2
cipherbench keys static /etc/cipherbench/gw2/gw2.key /root/peer.key
chown -R cipherbench: /etc/cipherbench/gw2
cat > /etc/cipherbench/gw2.yaml <<'Y'
local: 192.0.2.1
remote: 192.0.2.3
keys: { static: gw2/gw2.key }
tunnel: { name: cb1, address: 10.8.0.1/24, routes: [10.8.1.0/24] }
user: cipherbench
Y
systemctl start cipherbench-encrypt@gw2 || fail "it does not start"
pid=$(systemctl show --property MainPID --value cipherbench-encrypt@gw2)
say "process: $(grep -E '^(Uid|CapPrm|Seccomp|NoNewPrivs)' /proc/"$pid"/status | tr '\n\t' '; ')"
[ "$(stat -c %U /proc/"$pid")" = cipherbench ] || [ "$(awk '/^Uid/ { print $2 }' /proc/"$pid"/status)" = "$(id -u cipherbench)" ] ||
    fail "it is not its user"
systemctl stop cipherbench-closed@gw2

say "KMEs"
cd /etc/cipherbench
mkdir kme
cipherbench keys authority kme >/dev/null
cipherbench keys certificate --authority kme --out kme kme-a >/dev/null
chown -R cipherbench: kme
cat > kme.yaml <<'Y'
kmes:
  - { name: kme-a, listen: "127.0.0.1:8443", certificate: kme/kme-a.pem, key: kme/kme-a.key, ca: kme/ca.pem, saes: [gw1] }
Y
systemctl start cipherbench-kme || fail "the KMEs do not start"
systemctl stop cipherbench-kme

say "an agent without a server"
systemctl start cipherbench-agent || true
sleep 3
journalctl --no-pager --output cat --unit cipherbench-agent | grep -m 1 '^error.*127.0.0.1:4222' || fail "the agent does not name the server"
systemctl stop cipherbench-agent
rm -r /etc/cipherbench/kme /etc/cipherbench/kme.yaml /etc/cipherbench/gw2 /etc/cipherbench/gw2.yaml
say "services are as they should be"

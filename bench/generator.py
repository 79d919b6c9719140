"""What `cipherbench frames` is told on its standard input: the task of a generator or an analyser of test frames.

The structure is `traffic::spec::Spec`.
"""

import json


def octets(mac):
    return [int(part, 16) for part in mac.split(":")]


def test_frames(frame_bytes, flows=1):
    mix = {"name": str(frame_bytes), "shares": [{"frame_bytes": frame_bytes, "weight": 1}]}
    return {"mix": mix, "flows": flows, "tunnels": 1}


def sender(macs, addresses, frame_bytes, frames_per_s, seconds, flows=1):
    """From the first MAC and IP address to the second; without a rate as fast as it can."""
    return {
        "role": "send",
        "addresses": {
            "source_mac": octets(macs[0]), "target_mac": octets(macs[1]),
            "source": addresses[0], "target": addresses[1],
        },
        "frames": test_frames(frame_bytes, flows),
        "frames_per_s": frames_per_s and int(frames_per_s),
        "duration_ns": int(seconds * 1e9), "burst_ns": 0, "peer": None,
    }


def receiver(frame_bytes, flows=1):
    """Until it is stopped."""
    return {"role": "receive", "frames": test_frames(frame_bytes, flows), "expected": None, "peer": None}


def spec(interface, tag, role, port=None):
    return json.dumps({"interface": interface, "port": port, "threads": 1, "tag": tag, "role": role})

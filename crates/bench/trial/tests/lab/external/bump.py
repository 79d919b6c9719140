import hashlib, select, socket, struct, sys
sealing, key = sys.argv[1] == 'seal', b'a key of the test'
def port(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(263, 23, 1)
    opened.bind((name, 3))
    return opened
def crypt(number, text):
    stream = hashlib.shake_128(key + number).digest(len(text))
    mixed = int.from_bytes(text, 'big') ^ int.from_bytes(stream, 'big')
    return mixed.to_bytes(len(text), 'big') if sealing else text
def tag(number, body):
    return hashlib.blake2b(number + body, key=key, digest_size=16).digest()
inside, outside = port('eth0'), port('wan')
tci = b'\x0c' if sealing else b'\x00'
sent = 0
print('ready version=1 suite=shake128-blake2', flush=True)
while True:
    for ready in select.select([inside, outside], [], [])[0]:
        frame = ready.recv(65536)
        try:
            if ready is inside:
                sent += 1
                number = frame[6:12] + struct.pack('>I', sent)
                body = crypt(number, frame[12:])
                outside.send(frame[:12] + b'\x88\xe5' + tci + b'\x00' + number[6:] + body + tag(number, body))
            elif frame[12:14] == b'\x88\xe5':
                number, body = frame[6:12] + frame[16:20], frame[20:-16]
                if tag(number, body) == frame[-16:]:
                    inside.send(frame[:12] + crypt(number, body))
        except OSError as error:
            print(error, flush=True)

"""Words that no one but the two ends of a request may see, and how they are looked for in what was sent."""
import base64, secrets


class Canaries:
    def __init__(self):
        self.planted = {}

    def plant(self, where):
        """A new one, of letters and digits that fit everywhere."""
        word = "canary" + secrets.token_hex(8)
        self.planted[where] = word
        return word

    def plant_hex(self, where, length):
        word = secrets.token_hex(length // 2)
        self.planted[where] = word
        return word

    def found_in(self, texts):
        """Where each that was found had been planted."""
        whole = b"\n".join(texts)
        lower = whole.lower()
        return sorted(where for where, word in self.planted.items() if any(it in whole for it in spellings(word)) or word.encode() in lower)


def spellings(word):
    """A word as it may be written: backwards, in hexadecimal, in base64 wherever it begins, with its characters escaped."""
    data = word.encode()
    yield from (data[::-1], data.hex().encode(), data.hex().upper().encode())
    yield "".join(f"%{byte:02X}" for byte in data).encode()
    yield "".join(f"\\u{byte:04x}" for byte in data).encode()
    yield word.encode("utf-16-le")
    for before in range(3):
        # What the bytes around it decide is left out.
        yield from (encode(b"x" * before + data)[4 if before else 0 : -4] for encode in (base64.b64encode, base64.urlsafe_b64encode))

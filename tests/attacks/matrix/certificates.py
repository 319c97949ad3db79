"""An authority for a gateway and its clients, and what clients show: certificates of every kind that is right or wrong."""
import datetime, ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FORMS = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def minutes(n):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=n)


class Authority:
    """Signs into a folder. All that it signs is for one key: who shows it is told apart by the certificate."""

    def __init__(self, folder, server=None):
        """`server`: the file of the authority that the gateway is known by, if that is another one."""
        self.folder, self.count, self.last = folder, 0, None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key, self.clients = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the matrix")])
        own = self.begun(self.name, self.key, 60).add_extension(x509.BasicConstraints(True, None), True)
        own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.sign(self.key, hashes.SHA256()).public_bytes(FORMS[0]))
        self.server = server or self.file
        self.key_file = folder / "key.pem"
        self.key_file.write_bytes(self.clients.private_bytes(*FORMS))

    def begun(self, subject, key, life):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
        return builder.serial_number(x509.random_serial_number()).not_valid_before(minutes(-60)).not_valid_after(minutes(life))

    def issue(self, names, purpose=CLIENT, life=60):
        """The file of a certificate with these names, for minutes."""
        self.count += 1
        builder = self.begun(x509.Name([]), self.clients, life).add_extension(x509.ExtendedKeyUsage([purpose]), False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), True)
        self.last = self.folder / f"{self.count}.pem"
        self.last.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(FORMS[0]))
        return self.last

    def context(self, file=None):
        """How one connects who shows this, or nothing."""
        context = ssl.create_default_context(cafile=self.server)
        if file:
            context.load_cert_chain(file, self.key_file)
        return context

    def shown(self, *uris, **more):
        return self.context(self.issue([x509.UniformResourceIdentifier(uri) for uri in uris], **more))


def of_gateway(authority):
    return authority.issue([x509.DNSName("localhost")], SERVER)


def uri(tenant, role, id=None):
    return f"countersign://{tenant}/{role}" + (f"/{id}" if id else "")

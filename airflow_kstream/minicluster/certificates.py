"""The minicluster's own certificate authority."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

from airflow_kstream.minicluster.folders import Folders

_LIFE = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)
_AUTHORITY = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kstream minicluster")])
_SERVER = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
_ADDRESSES = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])


def create_certificates(folders: Folders, password: str) -> None:
    """Write the authority for clients, in PEM and as Java's truststore, and the server's key as Java's keystore."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key)
    certificate = _certificate(key, authority_key)
    locked = BestAvailableEncryption(password.encode())
    folders.ca.write_bytes(authority.public_bytes(Encoding.PEM))
    trusted = [pkcs12.PKCS12Certificate(authority, b"ca")]
    folders.truststore.write_bytes(pkcs12.serialize_java_truststore(trusted, locked))
    folders.keystore.touch(mode=0o600)
    folders.keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(b"localhost", key, certificate, [authority], locked)
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    builder = _builder(_AUTHORITY, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_may_sign_certificates(), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False).sign(key, SHA256())


def _certificate(key: ec.EllipticCurvePrivateKey, authority_key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = _builder(_SERVER, key.public_key()).add_extension(_ADDRESSES, critical=False)
    return builder.add_extension(issuer, critical=False).sign(authority_key, SHA256())


def _builder(subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=_AUTHORITY,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _CLOCK_SKEW,
        not_valid_after=now + _LIFE,
    )


def _may_sign_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )

"""A certificate authority, a certificate log and a transparency log, as Sigstore has them."""

import base64
import datetime as dt
import hashlib
import json
import struct
from typing import Any

import rfc8785
from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from geneb_ci.audit.record.envelope import PAYLOAD_TYPE, pre_authentication_encoding
from reference_harness.formats.merkle import inclusion_proof, root_of

ISSUER = "https://token.actions.githubusercontent.com"
REPOSITORY = "https://github.com/example/board"
WORKFLOW = f"{REPOSITORY}/.github/workflows/audit.yml@refs/heads/main"
SIGNED = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
"""When everything is signed: after the audits of `recorded`."""
_LIFE = dt.timedelta(minutes=10)
_SHA256 = ec.ECDSA(hashes.SHA256())
_SCTS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


def new() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def log_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(spki(key)).digest()


class SmallSigstore:
    """What signs for a workflow: each instance has keys of its own."""

    def __init__(self) -> None:
        self.ca, self.ct, self.rekor = new(), new(), new()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority.example")])
        self.authority = (
            self._builder(name, self.ca, SIGNED - dt.timedelta(days=365), dt.timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self.ca.public_key()), critical=False
            )
            .sign(self.ca, hashes.SHA256())
        )
        self.others = [hashlib.sha256(b"\0%d" % number).digest() for number in range(5)]
        """Hashes of other entries of the transparency log."""

    def trusted_root(self) -> bytes:
        """Return the file of the policy."""
        valid = {"start": "2022-01-01T00:00:00Z"}
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [_log("https://rekor.example", self.rekor, valid)],
                "ctlogs": [_log("https://ct.example", self.ct, valid)],
                "certificateAuthorities": [
                    {
                        "subject": {"organization": "example", "commonName": "authority.example"},
                        "uri": "https://authority.example",
                        "certChain": {
                            "certificates": [
                                {"rawBytes": b64(self.authority.public_bytes(Encoding.DER))}
                            ]
                        },
                        "validFor": valid,
                    }
                ],
            }
        ).encode()

    def sign(self, payload: bytes, late: dt.timedelta = dt.timedelta(0), **names: str) -> Any:
        """Return a bundle as JSON; `late` after the certificate was issued."""
        key = new()
        der = self._certificate(key, **names).public_bytes(Encoding.DER)
        signature = key.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload), _SHA256)
        signed = {"signature": b64(signature), "verifier": b64(_pem(der))}
        body = rfc8785.dumps(
            {
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
                    "payloadHash": {
                        "algorithm": "sha256",
                        "value": hashlib.sha256(payload).hexdigest(),
                    },
                    "signatures": [signed],
                },
            }
        )
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": b64(der)},
                "tlogEntries": [self._entry(body, int((SIGNED + late).timestamp()))],
            },
            "dsseEnvelope": {
                "payload": b64(payload),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": b64(signature)}],
            },
        }

    def _entry(self, body: bytes, moment: int) -> dict[str, Any]:
        leaves = [*self.others, hashlib.sha256(b"\0" + body).digest()]
        index, root = len(leaves) - 1, root_of(leaves)
        text = f"rekor.example - 1\n{len(leaves)}\n{b64(root)}\n"
        note = b64(log_id(self.rekor)[:4] + self.rekor.sign(text.encode(), _SHA256))
        promised = rfc8785.dumps(
            {
                "body": b64(body),
                "integratedTime": moment,
                "logID": log_id(self.rekor).hex(),
                "logIndex": index,
            }
        )
        return {
            "logIndex": str(index),
            "logId": {"keyId": b64(log_id(self.rekor))},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(moment),
            "inclusionPromise": {"signedEntryTimestamp": b64(self.rekor.sign(promised, _SHA256))},
            "inclusionProof": {
                "logIndex": str(index),
                "rootHash": b64(root),
                "treeSize": str(len(leaves)),
                "hashes": [b64(digest) for digest in inclusion_proof(leaves, index)],
                "checkpoint": {"envelope": f"{text}\n\N{EM DASH} rekor.example {note}\n"},
            },
            "canonicalizedBody": b64(body),
        }

    def _certificate(
        self,
        key: ec.EllipticCurvePrivateKey,
        issuer: str = ISSUER,
        workflow: str = WORKFLOW,
        repository: str = REPOSITORY,
    ) -> x509.Certificate:
        """Issue a certificate that lasts ten minutes, with the certificate log's timestamp."""
        own = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.ca.public_key())
        builder = (
            self._builder(x509.Name([]), key, SIGNED, _LIFE)
            .add_extension(_usage(certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(own, critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(workflow)]),
                critical=True,
            )
        )
        for number, text in (("8", issuer), ("12", repository)):
            oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
            value = x509.UnrecognizedExtension(oid, asn1.encode_der(text))
            builder = builder.add_extension(value, critical=False)
        before = builder.sign(self.ca, hashes.SHA256()).tbs_certificate_bytes
        scts = x509.UnrecognizedExtension(_SCTS, self._timestamp(before))
        return builder.add_extension(scts, critical=False).sign(self.ca, hashes.SHA256())

    def _timestamp(self, tbs: bytes) -> bytes:
        """Return the list of one timestamp of the certificate log, as RFC 6962 has it."""
        moment = int(SIGNED.timestamp() * 1000)
        entry = log_id(self.ca) + len(tbs).to_bytes(3, "big") + tbs
        signature = self.ct.sign(struct.pack("!BBQH", 0, 0, moment, 1) + entry + b"\0\0", _SHA256)
        oid_bytes = b"\0" + log_id(self.ct) + struct.pack("!QH", moment, 0) + b"\4\3"
        oid_bytes += len(signature).to_bytes(2, "big") + signature
        both = len(oid_bytes).to_bytes(2, "big") + oid_bytes
        return asn1.encode_der(len(both).to_bytes(2, "big") + both)

    def _builder(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        begins: dt.datetime,
        life: dt.timedelta,
    ) -> x509.CertificateBuilder:
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority.example")])
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + life)
        )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(der: bytes) -> bytes:
    return x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)


def _log(url: str, key: ec.EllipticCurvePrivateKey, valid: dict[str, str]) -> dict[str, Any]:
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": b64(spki(key)),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": valid,
        },
        "logId": {"keyId": b64(log_id(key))},
    }

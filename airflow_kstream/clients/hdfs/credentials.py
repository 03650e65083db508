"""Credentials files on HDFS, such as those that a job's submitter left there for the job."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.credential_files import MAX_BYTES
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials


class CredentialHdfs(Hdfs):
    """A reader of credentials files. It keeps only the parts that are not secret."""

    def credentials(self, path: str) -> HadoopCredentials:
        """Read the file at this path, in either format, or a text with one token in its URL form.

        Raises InvalidInput: when the content is malformed, naming the byte where it stops making sense, or exceeds
        `MAX_BYTES`; and the errors of Hdfs.
        """
        content: SecretBytes = self._ask(f"read {path}", lambda: self._content(path))
        if len(content) > MAX_BYTES:
            raise InvalidInput(f"{path} has more than {MAX_BYTES} bytes, which no credentials file has")
        try:
            return HadoopCredentials.read(content)
        except InvalidInput as error:
            raise InvalidInput(f"{path} can't be read as Hadoop credentials: {error.message}") from None

    def _content(self, path: str) -> SecretBytes:
        with self._client.read(plain_path(path), length=MAX_BYTES + 1) as reader:
            return SecretBytes(reader.read())

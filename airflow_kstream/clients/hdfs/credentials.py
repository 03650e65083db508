"""Credentials files that lie on HDFS, such as those that a job's submitter left there for it."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.credential_files import MAX_BYTES
from airflow_kstream.model.credentials_file import HadoopCredentials
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.hdfs_path import plain_path


class CredentialHdfs(Hdfs):
    """Reads credentials files. It keeps of them what is not secret."""

    def credentials(self, path: str) -> HadoopCredentials:
        """What the file at this path holds, of either format, or a text with one token in its URL form.

        Beside what Hdfs raises: InvalidInput that names the byte where the content stops to make sense, also for
        more than `MAX_BYTES`.
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

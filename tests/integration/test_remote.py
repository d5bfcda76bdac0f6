"""A Spark Connect server that asks for TLS and a token can be used like any other."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
import trustme
from pydantic import SecretStr

from lockstep.catalog import connect
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import spark_server
from lockstep.stack.errors import Unhealthy

TOKEN = "open-sesame"


class Doorkeeper(grpc.GenericRpcHandler):
    """Passes the calls of those who have the token on to a server without TLS."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        call = self.channel.stream_stream(details.method)
        admitted = ("authorization", f"Bearer {TOKEN}") in details.invocation_metadata

        def forward(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            if not admitted:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "wrong token")
            try:
                yield from call(requests)
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(forward)


@contextmanager
def doorkeeper(remote: str, certificate: trustme.LeafCert) -> Iterator[int]:
    """The port of a doorkeeper with TLS before a server."""
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    with grpc.insecure_channel(remote.removeprefix("sc://")) as channel:
        server = grpc.server(ThreadPoolExecutor(8), handlers=[Doorkeeper(channel)])
        port = server.add_secure_port(f"{LOOPBACK}:0", credentials)
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[trustme.CA]:
    """Who signs the server's certificate; gRPC reads whom it trusts once in a process."""
    own, file = trustme.CA(), tmp_path_factory.mktemp("tls") / "ca.pem"
    own.cert_pem.write_to_path(str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(file))
        yield own


@pytest.fixture
def behind_tls(settings: Settings, authority: trustme.CA) -> Iterator[Settings]:
    with doorkeeper(settings.spark_remote, authority.issue_cert(LOOPBACK)) as port:
        remote = f"sc://{LOOPBACK}:{port}/;use_ssl=true"
        yield settings.model_copy(update={"spark_remote": remote, "spark_token": SecretStr(TOKEN)})


def test_a_server_with_tls_and_a_token_runs_queries_and_is_healthy(behind_tls: Settings) -> None:
    with connect(behind_tls, "test") as spark:
        assert spark.range(3).count() == 3
    healthy = spark_server.check(behind_tls)
    assert "answers at sc://" in healthy
    assert TOKEN not in healthy


def test_a_wrong_token_is_unhealthy_and_not_printed(behind_tls: Settings) -> None:
    wrong = behind_tls.model_copy(update={"spark_token": SecretStr("close-sesame")})
    with pytest.raises(Unhealthy, match="wrong token") as unhealthy:
        spark_server.check(wrong)
    assert "sesame" not in str(unhealthy.value)


@pytest.mark.usefixtures("authority")
def test_a_certificate_of_nobody_we_trust_is_unhealthy_at_once(settings: Settings) -> None:
    with doorkeeper(settings.spark_remote, trustme.CA().issue_cert(LOOPBACK)) as port:
        stranger = settings.model_copy(update={"spark_remote": f"sc://{LOOPBACK}:{port}/;use_ssl=true"})
        with pytest.raises(Unhealthy, match=r"(?i)certificate|handshake|ssl"):
            spark_server.check(stranger)

"""Certificates that the waits of emitted streams are exact, for Coq to check (`mpkc verify --coq`; proofs/checker)."""

from xdsl.ir import Operation

from mpkc.certificate.coq import printed
from mpkc.certificate.hints import annotate
from mpkc.certificate.lowering import lowered, refused
from mpkc.certificate.statements import Model
from mpkc.certificate.symbolic import Uncertain
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.dialects.sem_structure import structure_of
from mpkc.passes.semaphores.bounds import entries


def certificate(program: Operation, streams: StreamsOp, name: str) -> str:
    """The text of a certificate: the program, its streams, and a theorem that coqc proves with proofs/checker.

    Args:
        name: of the program, for the reader.

    Raises:
        OpError: what no certificate covers, or what the checker would not accept.
    """
    return printed(annotated(program, streams), name)


def annotated(program: Operation, streams: StreamsOp) -> Model:
    """What the certificate says, with the hints that the checker needs; see `certificate`."""
    maxima = {loop.name: most for loop, most in entries(structure_of(program)).items() if most is not None}
    model = lowered(program, streams, maxima)
    for stream in model.streams:
        try:
            annotate(model, stream)
        except Uncertain as err:
            where = f'the stream of "{stream.engine}": {err.message}'
            raise refused(err.op or program, err.message if err.op else where) from err
    return model

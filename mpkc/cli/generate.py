"""`mpkc generate`: text from a language model, in one launch of one mega-kernel."""

import click

from mpkc.cli.common import byte_progress, grids_option, json_option, print_json, workers_option, working
from mpkc.cli.errors import told_in_one_line
from mpkc.targets import TARGETS, TargetName


@click.command()
@click.argument("model")
@click.option("--prompt", required=True, metavar="TEXT", help="The text to go on from.")
@click.option("--tokens", type=click.IntRange(1), default=24, show_default=True, help="New tokens at most.")
@click.option("--target", type=click.Choice(TARGETS), default="host", show_default=True, help="Where it runs.")
@click.option("--check", is_flag=True, help="Compare the logits of every step with the float32 reference.")
@workers_option
@grids_option
@json_option
def generate(
    model: str,
    prompt: str,
    tokens: int,
    target: TargetName,
    check: bool,
    workers: int | None,
    grids: str | None,
    as_json: bool,
) -> None:
    """Continue a prompt.

    \b
    MODEL is smollm2-135m, a .gguf file or a checkpoint directory.
        mpkc generate smollm2-135m --prompt "The capital of France is"
        mpkc generate model.gguf --prompt "Once" --tokens 100 --check --json

    Exit code 1: with --check, where the logits differ from the reference.
    """
    with told_in_one_line():
        ok = continue_prompt(model, prompt, tokens, target, check, workers, grids, as_json)
    if not ok:
        raise SystemExit(1)


def continue_prompt(
    spec: str,
    prompt: str,
    count: int,
    target: TargetName,
    check: bool,
    workers: int | None,
    grids: str | None,
    as_json: bool,
) -> bool:
    """Do it; whether all checks passed."""
    from mpkc.dialects.tops.function import only_function
    from mpkc.generate import Agreement, Token, decode_rate, new_tokens, request_for
    from mpkc.inputs import decoding_input
    from mpkc.models.source import open_model
    from mpkc.models.weights import program_weights
    from mpkc.runtime.reference.decode import ReferenceDecoder
    from mpkc.targets import decode_inputs, open_run

    model = open_model(spec)
    tokenizer = model.tokenizer()
    request = request_for(model.config, tokenizer.encode(prompt), count, lockstep=check)
    given = decoding_input(model, context=len(request.prompt) + count)
    with byte_progress("weights") as progress:
        weights = program_weights(model, only_function(given.module), progress)
    with working("compiling one mega-kernel"):
        run = open_run(target, given, weights, decode_inputs(given), workers, grids)
    agreement, tokens = Agreement(), run.decode(request)
    if check:
        reference = ReferenceDecoder(only_function(given.module), weights)
        tokens = agreement.follow(tokens, lambda: run.results()[1][0], reference, request.prompt)
    stream, seen = tokenizer.stream(), list[Token]()
    for token in new_tokens(tokens, request):
        seen.append(token)
        if not as_json:
            click.echo(stream.push(token.id), nl=False)
    ids = [token.id for token in seen]
    if as_json:
        result = {"text": tokenizer.decode(ids), "tokens": ids, "tokens_per_second": decode_rate(seen)}
        print_json(result | ({"check": agreement.to_json()} if check else {}))
    else:
        click.echo(stream.finish())
        if check:
            click.echo(agreement.summary(), err=True)
    return not agreement.failures

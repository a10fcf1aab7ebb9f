"""The floor: as many requests of the same size, straight over aiohttp, their JSON read and nothing else done."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence

import aiohttp
from common import MODEL, Judge, Sample, Values, Work, calls_one_by_one, contender

SIZE = 4500  # characters of a prompt: ragas' examples, the schema and one input


def make(given: argparse.Namespace) -> Judge:
    async def ask_all(count: int, question: str) -> None:
        slots = asyncio.Semaphore(given.in_flight)
        connector = aiohttp.TCPConnector(limit=given.in_flight)
        async with aiohttp.ClientSession(connector=connector) as session:
            async def one(number: int) -> None:
                prompt = f"useful in arriving {'x' * SIZE} {number} {question}"
                body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
                async with slots, session.post(f"{given.url}/chat/completions", json=body) as response:
                    json.loads(json.loads(await response.text())["choices"][0]["message"]["content"])

            await asyncio.gather(*map(one, range(count)))

    def judge(samples: Sequence[Sample], metrics: tuple[str, ...]) -> Values:
        asyncio.run(ask_all(calls_one_by_one(Work(tuple(samples), metrics)), samples[0].question))
        return {}

    return judge


if __name__ == "__main__":
    contender(make)

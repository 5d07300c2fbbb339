"""Completes one tool-calling turn with a provider's own SDK: declares a tool, gets calls, sends their results, gets the text.

    sdks.py DIALECT whole|stream URL [DIALECT whole|stream URL]...

Prints a line of JSON for each: {"calls": [[name, arguments], …], "text": the final text, "thinking": …, "tokens": [read, written]}.
"""

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
QUESTION = "How warm is it in Zürich and in Genève?"


def result(arguments):
    return f"{arguments['city']}: 15 degrees"


def openai_chat(url, stream):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    tool = {"type": "function", "function": {"name": "weather__now", "description": "Tells the weather.", "parameters": SCHEMA}}
    messages = [{"role": "user", "content": QUESTION}]
    calls = []

    def ask():
        common = {"model": "gpt", "messages": messages, "tools": [tool]}
        if not stream:
            return client.chat.completions.create(**common)
        with client.chat.completions.stream(**common, stream_options={"include_usage": True}) as events:
            for _ in events:
                pass
            return events.get_final_completion()

    first = ask().choices[0]
    assert first.finish_reason == "tool_calls", first
    messages.append(first.message.model_dump(exclude_none=True, exclude={"parsed": True, "audio": True, "annotations": True}))
    for message in messages:
        for call in message.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
    for call in first.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        calls.append([call.function.name, arguments])
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result(arguments)})
    last = ask()
    usage = last.usage
    return {
        "calls": calls,
        "text": last.choices[0].message.content,
        "thinking": first.message.model_dump().get("reasoning_content"),
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
    }


def openai_responses(url, stream):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    tool = {"type": "function", "name": "weather__now", "description": "Tells the weather.", "parameters": SCHEMA, "strict": False}
    items = [{"role": "user", "content": QUESTION}]
    calls = []
    thinking = ""

    def ask():
        common = {"model": "gpt", "input": items, "tools": [tool], "store": False, "include": ["reasoning.encrypted_content"]}
        if not stream:
            return client.responses.create(**common)
        with client.responses.stream(**common) as events:
            for _ in events:
                pass
            return events.get_final_response()

    for item in ask().output:
        item_json = item.model_dump(exclude_none=True)
        item_json.pop("parsed_arguments", None)
        items.append(item_json)
        if item.type == "reasoning":
            thinking += item.summary[0].text
        if item.type == "function_call":
            calls.append([item.name, json.loads(item.arguments)])
    for item in list(items):
        if item.get("type") == "function_call":
            output = result(json.loads(item["arguments"]))
            items.append({"type": "function_call_output", "call_id": item["call_id"], "output": output})
    last = ask()
    return {
        "calls": calls,
        "text": last.output_text,
        "thinking": thinking,
        "tokens": [last.usage.input_tokens, last.usage.output_tokens],
    }


def anthropic(url, stream):
    from anthropic import Anthropic

    client = Anthropic(base_url=url, api_key="any", max_retries=0)
    tool = {"name": "weather__now", "description": "Tells the weather.", "input_schema": SCHEMA}
    messages = [{"role": "user", "content": QUESTION}]

    def ask():
        common = {"model": "claude", "max_tokens": 1000, "messages": messages, "tools": [tool]}
        if not stream:
            return client.messages.create(**common)
        with client.messages.stream(**common) as events:
            for _ in events:
                pass
            return events.get_final_message()

    first = ask()
    assert first.stop_reason == "tool_use", first
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]})
    made = [block for block in first.content if block.type == "tool_use"]
    messages.append({
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": result(call.input)} for call in made],
    })
    last = ask()
    return {
        "calls": [[call.name, call.input] for call in made],
        "text": "".join(block.text for block in last.content if block.type == "text"),
        "thinking": "".join(block.thinking for block in first.content if block.type == "thinking"),
        "tokens": [last.usage.input_tokens, last.usage.output_tokens],
    }


def gemini(url, stream):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url))
    tool = types.Tool(function_declarations=[
        types.FunctionDeclaration(name="weather.now", description="Tells the weather.", parameters_json_schema=SCHEMA)
    ])
    config = types.GenerateContentConfig(
        tools=[tool], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]

    def ask():
        common = {"model": "gemini-3-flash", "contents": contents, "config": config}
        if not stream:
            response = client.models.generate_content(**common)
            return response.candidates[0].content.parts, response.usage_metadata
        parts = []
        for chunk in client.models.generate_content_stream(**common):
            parts += chunk.candidates[0].content.parts
            usage = chunk.usage_metadata
        return parts, usage

    parts, _ = ask()
    contents.append(types.Content(role="model", parts=parts))
    made = [part.function_call for part in parts if part.function_call]
    contents.append(types.Content(role="user", parts=[
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": result(call.args)}))
        for call in made
    ]))
    last, usage = ask()
    return {
        "calls": [[call.name, call.args] for call in made],
        "text": "".join(part.text or "" for part in last if not part.thought),
        "thinking": "".join(part.text or "" for part in parts if part.thought),
        "tokens": [usage.prompt_token_count, usage.candidates_token_count],
    }


HOLD = {"openai-chat": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic, "gemini": gemini}

if __name__ == "__main__":
    for dialect, way, url in zip(*[iter(sys.argv[1:])] * 3):
        print(json.dumps(HOLD[dialect](url, way == "stream")), flush=True)

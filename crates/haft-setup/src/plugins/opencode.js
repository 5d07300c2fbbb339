export const Haft = async ({ directory }) => {
  // Calls that were let run and have not ended: OpenCode calls no hook after one that fails, and says so in an event alone.
  const running = new Set();
  const MOST_RUNNING = 1000;
  const call = (sessionID, callID, tool, input) => ({
    session_id: sessionID,
    cwd: directory,
    tool_name: tool,
    tool_input: input ?? {},
    tool_use_id: callID,
  });
  const ended = async (of, response, error) => {
    if (!running.delete(of.tool_use_id)) return;
    const how = error == null ? { hook_event_name: "PostToolUse" } : { hook_event_name: "PostToolUseFailure", error };
    await report({ ...of, ...how, tool_response: response });
  };

  return {
    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      const answer = await decide(call(sessionID, callID, tool, output.args));
      if (answer.decision !== "none" && answer.decision !== "allow") {
        throw new Error(answer.reason);
      }
      if (answer.input) {
        // The object stays the same one: the tool holds it already.
        for (const name of Object.keys(output.args)) delete output.args[name];
        Object.assign(output.args, answer.input);
      }
      if (running.size >= MOST_RUNNING) running.clear();
      running.add(callID);
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      // A command that fails is a result like any other to OpenCode.
      const code = output?.metadata?.exit;
      const error = typeof code === "number" && code !== 0 ? `exit code ${code}` : null;
      await ended(call(sessionID, callID, tool, args), output?.output ?? null, error);
    },
    event: async ({ event }) => {
      const { info, part, sessionID } = event?.properties ?? {};
      if (event?.type === "session.created") {
        await report({ hook_event_name: "SessionStart", session_id: info?.id ?? sessionID ?? "", cwd: directory });
      }
      if (event?.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error") {
        const { sessionID: session, callID, tool, state } = part;
        await ended(call(session, callID, tool, state.input), null, String(state.error ?? ""));
      }
    },
  };
};

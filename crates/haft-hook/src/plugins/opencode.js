export const Haft = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
    const answer = await decide({
      session_id: sessionID,
      cwd: directory,
      tool_name: tool,
      tool_input: output.args ?? {},
      tool_use_id: callID,
    });
    if (answer.decision !== "none" && answer.decision !== "allow") {
      throw new Error(answer.reason);
    }
    if (answer.input) {
      // The object stays the same one: the tool holds it already.
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.input);
    }
  },
  "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
    await report({
      hook_event_name: "PostToolUse",
      session_id: sessionID,
      cwd: directory,
      tool_name: tool,
      tool_input: args ?? {},
      tool_use_id: callID,
      tool_response: output?.output ?? null,
    });
  },
  event: async ({ event }) => {
    if (event?.type !== "session.created") return;
    const session = event.properties?.info?.id ?? event.properties?.sessionID;
    await report({ hook_event_name: "SessionStart", session_id: session ?? "", cwd: directory });
  },
});

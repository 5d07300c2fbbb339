// @i-know-the-amp-plugin-api-is-wip-and-very-experimental-right-now

export default function (amp) {
  // Amp runs a plugin elsewhere than in the workspace.
  const folder = () => {
    const root = amp.system?.workspaceRoot;
    try {
      if (root) return amp.helpers.filePathFromURI(root);
    } catch {
      // It is the folder in which Amp runs the plugin, then.
    }
    return process.cwd();
  };
  const place = (event, ctx) => ({
    session_id: event?.thread?.id ?? ctx?.thread?.id ?? "",
    cwd: folder(),
  });
  const call = (event, ctx) => ({
    ...place(event, ctx),
    tool_name: event.tool,
    tool_input: event.input ?? {},
    tool_use_id: event.toolUseID,
  });

  amp.on("tool.call", async (event, ctx) => {
    const answer = await decide(call(event, ctx));
    const reject = (message) => ({ action: "reject-and-continue", message });
    switch (answer.decision) {
      case "none":
      case "allow":
        return answer.input ? { action: "modify", input: answer.input } : { action: "allow" };
      case "ask":
        try {
          const approved = await ctx.ui.confirm({
            title: `haft: may ${event.tool} run?`,
            message: answer.reason,
            confirmButtonText: "Run it",
            // Else an agent that supervises this one may answer.
            requireHuman: true,
          });
          if (approved === true) return { action: "allow" };
          return reject(`the user did not approve this call: ${answer.reason}`);
        } catch {
          return reject(`Amp could not ask its user, so haft denied a call that its user must approve: ${answer.reason}`);
        }
      default:
        return reject(answer.reason);
    }
  });

  // An event that this version of Amp does not have must not keep the one above from being heard.
  const observe = (name, handler) => {
    try {
      amp.on(name, handler);
    } catch {
      // It is not reported, then.
    }
  };

  observe("tool.result", async (event, ctx) => {
    const failed = event.status === "error" || event.error != null;
    const stopped = event.status === "cancelled";
    await report({
      ...call(event, ctx),
      hook_event_name: failed || stopped ? "PostToolUseFailure" : "PostToolUse",
      is_interrupt: stopped,
      tool_response: event.output ?? null,
      ...(failed ? { error: String(event.error?.message ?? event.error ?? "") } : {}),
    });
  });

  observe("session.start", async (event, ctx) => {
    await report({ hook_event_name: "SessionStart", ...place(event, ctx) });
  });
}

/** Resolves with a module once the stylesheet of the same name is loaded too. Rejects if the agent does not send one of them. */
export async function withStyles<Module>(name: string, module: Promise<Module>): Promise<Module> {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = `page/${name}.css`;
  const loaded = new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = reject;
  });
  document.head.append(link);
  const [result] = await Promise.all([module, loaded]);
  return result;
}

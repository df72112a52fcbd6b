/**
 * Resolves with a module once it and the stylesheet of the same name are loaded. Rejects if the agent does not send one
 * of them.
 */
export async function withStyles<Module>(name: string, module: Promise<Module>): Promise<Module> {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = `page/${name}.css`;
  const loaded = new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = (event) => {
      link.remove();
      reject(event);
    };
  });
  document.head.append(link);
  return (await Promise.all([module, loaded]))[0];
}

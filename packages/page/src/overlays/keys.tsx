import { keyGroups } from "./key-groups.ts";

/** The keys of the page and what they do. */
export function Keys() {
  return (
    <>
      <h2>Keys</h2>
      {keyGroups.map(([where, keys]) => (
        <section key={where}>
          <h3>{where}</h3>
          <dl class="fact-list">
            {keys.map(([names, what]) => (
              <div key={what}>
                <dt>
                  {names.map((name) => (
                    <kbd key={name}>{name}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <p class="quiet">In a field, and with Ctrl, Alt or Meta, keys do what they do elsewhere.</p>
    </>
  );
}

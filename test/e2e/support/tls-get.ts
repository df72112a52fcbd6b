import { request } from "node:https";

export interface TlsGet {
  /** On the loopback. */
  port: number;
  path: string;
  /** PEM of the authority, and the only one that is trusted. */
  ca: string;
  /** The name that the certificate must have. */
  serverName: string;
  token?: string | undefined;
}

/** A GET over TLS, as Prometheus asks a target by its address under a name of its configuration. */
export function getOverTls({ port, path, ca, serverName, token }: TlsGet) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const options = { host: "127.0.0.1", port, path, headers, ca, servername: serverName, agent: false };
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    request(options, async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode, text });
    })
      .on("error", reject)
      .end();
  });
}

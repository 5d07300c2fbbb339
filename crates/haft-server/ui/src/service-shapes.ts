// The servers of a run as the HTTP API tells them.

/** A running command of a run that serves, or that works in the background. */
export interface RunningService {
  name: string;
  command: string;
  task?: string;
  started: string;
  ports: number[];
  more_ports?: number;
}

/** A port of a run that is open to this machine's browsers. */
export interface ExposedPort {
  run: string;
  port: number;
  at: string;
}

//! The Model Context Protocol: our own wire layer and the server side of both eras.

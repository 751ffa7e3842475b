package conf

import _ "embed"

// ServerProperties is the server.properties that Varve ships.
//
//go:embed server.properties
var ServerProperties []byte

// Log4jProperties is the log4j.properties that Varve ships. It asks for
// ${varve.logs.dir}.
//
//go:embed log4j.properties
var Log4jProperties []byte

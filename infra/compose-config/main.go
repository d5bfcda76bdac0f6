// Loads Compose files as `docker compose config` does, without an engine: interpolates, checks, normalises and prints.
// See docs/operations/compose.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	model, err := load(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "the Compose file is not right:", err)
		os.Exit(1)
	}
	fmt.Print(string(model))
}

func load(files []string) ([]byte, error) {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv,
		cli.WithProfiles([]string{"*"}))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	return project.MarshalYAML()
}

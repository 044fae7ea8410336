// SPDX-License-Identifier: Apache-2.0

// Package command is the commands of kubectl olm.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/internal/spelling"
)

// Exit codes, as those of kubectl diff: 1 only with --exit-code.
const (
	exitOK    = 0
	exitFound = 1
	exitError = 2
)

// errFound ends a command that found something, with --exit-code.
var errFound = errors.New("something was found")

// root is what the commands have in common: the flags, and where they read and write.
type root struct {
	genericiooptions.IOStreams
	clock  func() time.Time
	config *genericclioptions.ConfigFlags

	files         []string
	complete, all bool
	selector, now string
	catalogs      dryrun.Catalogs
	registries    []string
	separate      separatePlans
	output        string
	color         string
	exitCode      bool
	palette       text.Palette
	// tellsUnread: the answer itself says what was not read.
	tellsUnread bool
	// terminal reports whether a stream is a terminal; answers are those that are typed there.
	terminal func(stream any) bool
	answers  *bufio.Reader
	// between is how long is waited before it is looked again what has become of a step.
	between time.Duration
}

// Run runs a command and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, clock func() time.Time) int {
	r := &root{IOStreams: streams, clock: clock, config: genericclioptions.NewConfigFlags(true), terminal: isTerminal, between: 2 * time.Second}
	return r.run(ctx, args)
}

func (r *root) run(ctx context.Context, args []string) int {
	cmd := r.command()
	cmd.SetArgs(args)
	cmd.SetIn(r.In)
	cmd.SetOut(r.Out)
	cmd.SetErr(r.ErrOut)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		return exitFound
	}
	for _, line := range text.Errors(err) {
		fmt.Fprintln(r.ErrOut, "error: "+text.Line(line, 2000))
	}
	return exitError
}

const long = `Where the operators of a cluster stand, what blocks them and why, and what would happen next.

It reads a live cluster as kubectl does, or files (-f) that kubectl wrote:

  kubectl get %s -A -o json > cluster.json
  kubectl olm status -f cluster.json --complete

Only approve and rollback write, and only after they have asked.`

// exported are the kinds that most commands look at, for the help.
const exported = "subscriptions.operators.coreos.com,installplans.operators.coreos.com,clusterserviceversions.operators.coreos.com," +
	"operatorgroups.operators.coreos.com,catalogsources.operators.coreos.com,deployments,pods"

func (r *root) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-olm",
		Short:         "Where operators stand, what blocks them, and why",
		Long:          fmt.Sprintf(long, exported),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl olm"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return r.check()
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w (--help lists the flags)", err) })
	f := cmd.PersistentFlags()
	r.config.AddFlags(f)
	f.StringArrayVarP(&r.files, "filename", "f", nil, "file or folder with objects in YAML or JSON, - for stdin, instead of a live cluster; may be repeated")
	f.BoolVar(&r.complete, "complete", false, "with -f: the files are all there is, so that kinds of which they have no objects have none")
	f.StringVar(&r.now, "now", "", "with -f: the time to decide at, RFC 3339 (default: the clock's)")
	f.BoolVarP(&r.all, "all-namespaces", "A", false, "all namespaces; with -f this is so unless -n is given")
	f.StringVarP(&r.selector, "selector", "l", "", "only Subscriptions with these labels")
	f.StringArrayVar(&r.registries, "registry", nil, "NAMESPACE/NAME=HOST:PORT: read the content of this CatalogSource from its registry, such as one of kubectl port-forward; may be repeated")
	f.Var(catalogFlag{r}, "catalog", "NAMESPACE/NAME=PATH: the content of this CatalogSource is a file-based catalog, a file (.gz allowed) or a folder; may be repeated")
	f.StringVar(&r.catalogs.GlobalNamespace, "global-catalog-namespace", "",
		"namespace whose CatalogSources all namespaces see (default: the one that the Subscriptions of most namespaces name)")
	f.StringVar(&r.color, "color", "auto", "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	f.BoolVar(&r.exitCode, "exit-code", false, "end with 1 when something is not as it should be; with more than 1 after an error")
	for _, add := range commands {
		cmd.AddCommand(add(r))
	}
	return cmd
}

// unknownCommand is the error for a command that there is not.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := spelling.Nearest(args[0], names); near != "" {
		return fmt.Errorf("there is no command %q: did you mean %q?", args[0], near)
	}
	return fmt.Errorf("there is no command %q (--help lists the commands)", args[0])
}

// one is the error of a command that takes exactly one argument.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes %s, and %d arguments were given", cmd.Name(), what, len(args))
		}
		return nil
	}
}

// commands make the commands.
var commands = []func(*root) *cobra.Command{
	statusCommand, whyCommand, nextCommand, pathCommand, catalogCommand, auditCommand, approveCommand, rollbackCommand,
}

// catalogFlag is the value of --catalog.
type catalogFlag struct{ r *root }

// Set implements pflag.Value.
func (c catalogFlag) Set(value string) error { return c.r.catalogs.Set(value) }

// Type implements pflag.Value.
func (c catalogFlag) Type() string { return "NAMESPACE/NAME=PATH" }

// String implements pflag.Value.
func (c catalogFlag) String() string { return "" }

// outputs adds -o to a command; the first is the default.
func (r *root) outputs(cmd *cobra.Command, allowed ...string) {
	list := strings.Join(allowed[:len(allowed)-1], ", ") + " or " + allowed[len(allowed)-1]
	cmd.Flags().StringVarP(&r.output, "output", "o", allowed[0], list)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(allowed, r.output) {
			hint := ""
			if slices.Contains(anyOutput, r.output) {
				hint = ": " + cmd.Name() + " has nothing to show in that form"
			}
			return fmt.Errorf("--output %q is none of %s%s", r.output, list, hint)
		}
		return run(cmd, args)
	}
}

// anyOutput are the values of -o that some command has.
var anyOutput = []string{"table", "wide", "json", "yaml", "mermaid", "html"}

// check refuses flags that do not fit together.
func (r *root) check() error {
	var err error
	switch {
	case r.now != "" && len(r.files) == 0:
		return errors.New("--now needs -f: a live cluster is asked about now")
	case r.complete && len(r.files) == 0:
		return errors.New("--complete needs -f: of a live cluster all is read")
	case r.all && *r.config.Namespace != "":
		return errors.New("--all-namespaces and --namespace exclude each other")
	}
	if r.now != "" {
		at, err := time.Parse(time.RFC3339, r.now)
		if err != nil {
			return fmt.Errorf("--now %q is no RFC 3339 time such as 2026-01-02T15:04:05Z", r.now)
		}
		r.clock = func() time.Time { return at }
	}
	r.palette, err = palette(r.color, r.terminal(r.Out))
	return err
}

// version says what was built, and from what.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "kubectl-olm (unknown)"
	}
	words := []string{"kubectl-olm", info.Main.Version, info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			words = append(words, s.Value)
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// write writes all of a text.
func write(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}

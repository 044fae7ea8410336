// SPDX-License-Identifier: Apache-2.0

// Package command is what the commands of the adapters have in common: flags that mean the same, checks before they
// start, and how they end.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/internal/terminal"
	"github.com/olmcore/olm/olmcore"
)

// Main runs a command until it ends or is told to, and exits: with 0, or with 1 and what is wrong on stderr.
func Main(run func(ctx context.Context, args []string, in io.Reader, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(exit(run(ctx, os.Args[1:], os.Stdin, terminal.NewWriter(os.Stdout)), Stderr))
}

// Stderr is the standard error of the process. Characters that people do not see are escaped.
var Stderr = terminal.NewWriter(os.Stderr)

// exit says what is wrong, a line for each error of a join, and returns the exit code.
func exit(err error, out io.Writer) int {
	if err == nil || errors.Is(err, errDone) {
		return 0
	}
	PrintError(out, err)
	return 1
}

// PrintError writes a line for each error of a join. An error text with line ends adds no lines.
func PrintError(out io.Writer, err error) {
	for _, line := range printable.Errors(err) {
		fmt.Fprintln(out, "olm: "+line)
	}
}

// NoCluster says what to do where client-go does not find which cluster to use: its own error names an environment
// variable that the commands do not heed, and does not say that the files are missing which KUBECONFIG names.
func (f *Flags) NoCluster(err error) error {
	isGiven := false
	f.Visit(func(given *flag.Flag) { isGiven = isGiven || given.Name == "kubeconfig" })
	var missing []error
	paths := filepath.SplitList(os.Getenv("KUBECONFIG"))
	for _, path := range paths {
		if _, problem := os.Stat(path); problem != nil {
			missing = append(missing, fmt.Errorf("KUBECONFIG: %w", problem))
		}
	}
	if len(paths) > 0 && len(missing) == len(paths) && !isGiven {
		err = errors.Join(missing...)
	}
	return fmt.Errorf("which cluster to use is not known: set KUBECONFIG or --kubeconfig, or run it in a Pod: %w", err)
}

// errDone ends a command that was only asked for its version or its flags.
var errDone = errors.New("done")

// Flags are those that the commands share; each adds its own to the FlagSet.
type Flags struct {
	*flag.FlagSet
	// Options, Only and Ignore hold what was given, after Parse.
	Options      controllers.Options
	Only, Ignore []string
	// Files says that the command takes arguments.
	Files bool

	// Judge says whether the custom resources of definitions that plans change are judged by their new schemas. How is
	// each command's own affair.
	Judge bool
	// Catalogs is the content that --catalog names.
	Catalogs controllers.Catalogs

	version bool
}

// New returns the flags that all commands have.
func New() *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet("olm", flag.ContinueOnError)}
	o := &f.Options
	f.Func("namespaces", "`NAMESPACES` to take care of, separated by commas; all when empty", list(&o.Namespaces, namespace))
	f.Func("only", "`CONTROLLERS` to run, such as catalog,csv; all when empty", list(&f.Only))
	f.Func("ignore-checks", "`CHECKS` that do not keep it from starting, of "+strings.Join(controllers.Checks(), ","), list(&f.Ignore))
	f.String("config", "", "`FILE` of YAML that sets what flags set, and all other options; a flag that is given has priority over it")
	f.BoolVar(&f.version, "version", false, "print the version, and end")
	f.Var(&f.Catalogs, "catalog", "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	f.StringVar(&o.GlobalNamespace, "global-catalog-namespace", controllers.DefaultGlobalNamespace, "`NAMESPACE` whose CatalogSources all namespaces see")
	f.Func("node-unreachable-grace", "`DURATION` that a node may be silent before its registry Pods are replaced (default 30s)", grace(&o.Catalog.NodeUnreachableGrace))
	f.Func("node-not-ready-grace", "`DURATION` that a node may be not ready before its registry Pods are replaced (default 1m)", grace(&o.Catalog.NodeNotReadyGrace))
	f.Func("catalog-replicas", "`NUMBER` of registry Pods of each CatalogSource, 1 to 5 (default 1)", func(value string) (err error) {
		if o.Catalog.Replicas, err = strconv.Atoi(value); err != nil || o.Catalog.Replicas < 1 || o.Catalog.Replicas > 5 {
			return errors.New("it must be a number from 1 to 5")
		}
		return nil
	})
	f.StringVar(&o.InstallPlan.OPMImage, "opm-image", "", "`IMAGE` of opm, to unpack bundle images with; without it none is unpacked")
	f.StringVar(&o.InstallPlan.UtilImage, "util-image", "", "`IMAGE` with the copy program that unpacking needs")
	f.BoolVar(&f.Judge, "judge", true, "refuse a plan that would change a CustomResourceDefinition so that custom resources are not valid any more; needs to list these")
	f.BoolVar(&o.Sweeps, "sweeps", true, "keep old InstallPlans in order, and look for what versions left behind")
	f.BoolVar(&o.CSV.Cleanup.SweepDelete, "sweep-delete", false,
		"delete what versions left behind, as OLM does, instead of reporting it; needs --sweeps")
	f.BoolVar(&o.Operators, "operators", true, "keep the Operator objects")
	return f
}

// FieldValidation adds the flag for what is written through an API server.
func (f *Flags) FieldValidation() *string {
	value := new(string)
	modes := []string{"Ignore", "Warn", "Strict"}
	f.Func("field-validation", "`MODE` of what is written: "+strings.Join(modes, ", ")+"; default is the API server's", func(given string) error {
		if !slices.Contains(modes, given) {
			return errors.New("it must be one of " + strings.Join(modes, ", "))
		}
		*value = given
		return nil
	})
	return value
}

// list takes names with commas between them.
func list(into *[]string, checks ...func(string) error) func(string) error {
	return func(value string) error {
		*into = nil
		if value == "" {
			return nil
		}
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			if name == "" {
				return errors.New("there is nothing between two commas, or at an end")
			}
			for _, check := range checks {
				if err := check(name); err != nil {
					return err
				}
			}
			*into = append(*into, name)
		}
		return nil
	}
}

func namespace(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a namespace: %s", name, problems[0])
	}
	return nil
}

func grace(into *time.Duration) func(string) error {
	return func(value string) (err error) {
		if *into, err = time.ParseDuration(value); err != nil || *into <= 0 {
			return errors.New("it must be a time of more than 0, such as 30s")
		}
		return nil
	}
}

// Parse reads the arguments and the file that --config names. The error names the flag that is wrong, or the field of
// the file, or ends the command after --version and --help, whose answer is written to out.
func (f *Flags) Parse(args []string, out io.Writer) error {
	f.SetOutput(io.Discard)
	wrongConfig := f.readConfig(args)
	err := f.FlagSet.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(out)
		f.PrintDefaults()
		return errDone
	case err != nil:
		return fmt.Errorf("%w (--help lists the flags)", err)
	case f.version:
		fmt.Fprintln(out, version())
		return errDone
	case f.NArg() > 0 && !f.Files:
		return fmt.Errorf("the argument %q is not known (--help lists the flags)", f.Arg(0))
	case wrongConfig != nil:
		return wrongConfig
	}
	if err := controllers.New(&f.Options).Only(f.Only...); err != nil {
		return given("--only", err)
	}
	names := controllers.Preflight{Ignore: append(controllers.Checks(), f.Ignore...)} // makes no check
	if err := names.Run(context.Background()); err != nil {
		return given("--ignore-checks", err)
	}
	f.Catalogs.Serve(&f.Options)
	return nil
}

// given says which flag an input error is about.
func given(flag string, err error) error {
	var input *olmcore.InputError
	if errors.As(err, &input) {
		return fmt.Errorf("%s: %s", flag, input.Problem)
	}
	return err
}

// version says what was built, and from what.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "olm (unknown)"
	}
	words := []string{"olm", info.Main.Version, info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			words = append(words, s.Value)
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// Check makes the checks of controllers.Preflight; allowed may be nil. The error says how to start all the same. Checks
// that could not look are said in a line each to warn.
func (f *Flags) Check(ctx context.Context, r olmcore.Reader, allowed func(context.Context, authorizationv1.ResourceAttributes) (bool, error), warn io.Writer) error {
	unjudged := func(check string, why error) {
		fmt.Fprintln(warn, printable.OneLine(fmt.Sprintf("olm: the check %s could not look: %v", check, why)))
	}
	err := controllers.Preflight{Reader: r, Options: f.Options, Only: f.Only, Allowed: allowed, Ignore: f.Ignore, Unjudged: unjudged}.Run(ctx)
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return err
	}
	var all []error
	for _, err := range joined.Unwrap() {
		var refusal *controllers.Refusal
		if errors.As(err, &refusal) {
			err = fmt.Errorf("%w (to start all the same: --ignore-checks=%s)", err, refusal.Check)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

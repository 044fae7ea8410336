// SPDX-License-Identifier: Apache-2.0

// Command packageserver serves PackageManifests in the cluster that --kubeconfig names, or in which it runs as a Pod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/packageserver"
	"github.com/olmcore/olm/examples/packageserver/registries"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/internal/terminal"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

func main() {
	stderr := terminal.NewWriter(os.Stderr)
	log.SetOutput(stderr) // of slog, too
	if err := run(genericapiserver.SetupSignalContext(), os.Args[1:], os.Stdout); err != nil {
		for _, line := range printable.Errors(err) {
			fmt.Fprintln(stderr, line)
		}
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	kubeconfig     string
	global         string
	catalogs       []string
	registries     *registry.Flags
	maxBytes       int
	serving        *genericoptions.SecureServingOptionsWithLoopback
	authentication *genericoptions.DelegatingAuthenticationOptions
	authorization  *genericoptions.DelegatingAuthorizationOptions
}

// parse reads the arguments. The error is pflag.ErrHelp after --help, which is answered to out.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{
		serving:        genericoptions.NewSecureServingOptions().WithLoopback(),
		authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
	}
	o.serving.BindPort = 5443
	flags := pflag.NewFlagSet("packageserver", pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster; without it that of the Pod is used")
	flags.StringVar(&o.global, "global-catalog-namespace", controllers.DefaultGlobalNamespace, "`NAMESPACE` whose CatalogSources all namespaces see")
	flags.StringArrayVar(&o.catalogs, "catalog", nil, "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	flags.IntVar(&o.maxBytes, "shown-max-bytes", packages.DefaultMaxBytes, "how much memory what is shown of one catalog may take, of those that registries have; "+
		"twice as much for all in the global namespace, and for all others; half as much for all in one other namespace")
	shared := flag.NewFlagSet("", flag.ContinueOnError)
	o.registries = registry.BindFlags(shared, true)
	flags.AddGoFlagSet(shared)
	o.serving.AddFlags(flags)
	flags.Usage = func() { fmt.Fprint(out, flags.FlagUsages()) }
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (--help lists the flags)", err)
	case o.maxBytes <= 0:
		return nil, errors.New("--shown-max-bytes must be more than 0")
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	o.authentication.RemoteKubeConfigFile, o.authorization.RemoteKubeConfigFile = o.kubeconfig, o.kubeconfig
	return o, errors.Join(errors.Join(o.serving.Validate()...), errors.Join(o.authentication.Validate()...), errors.Join(o.authorization.Validate()...))
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	content := &packageserver.Content{GlobalNamespace: o.global}
	files := map[types.NamespacedName]bool{}
	for _, value := range o.catalogs {
		source, err := load(content, value)
		if err != nil {
			return err
		}
		files[source] = true
	}
	asked, err := ask(o, content, files)
	if err != nil {
		return err
	}
	defer asked.Close()
	server, client, err := serve(o, content)
	if err != nil {
		return err
	}
	ready := newGate()
	if err := errors.Join(server.AddReadyzChecks(ready), server.AddPostStartHook("catalogsources", func(hook genericapiserver.PostStartHookContext) error {
		if err := content.Follow(hook, client); err != nil {
			return err
		}
		// Not in the hook: until it returns, the server is not live either.
		go ready.open(hook, asked.Wait, firstReads)
		return nil
	})); err != nil {
		return err
	}
	return server.PrepareRun().RunWithContext(ctx)
}

// serve returns the server of the content, and a client of the cluster.
func serve(o *options, content *packageserver.Content) (*genericapiserver.GenericAPIServer, dynamic.Interface, error) {
	config := packageserver.NewConfig()
	if err := errors.Join(
		o.serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil),
		o.serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig),
	); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(
		o.authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig),
		o.authorization.ApplyTo(&config.Authorization),
	); err != nil {
		return nil, nil, err
	}
	cluster, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, nil, err
	}
	server, err := packageserver.New(config, content)
	return server, client, err
}

// ask makes the content that of the registries of all CatalogSources but those of files; nil when none is asked.
func ask(o *options, content *packageserver.Content, files map[types.NamespacedName]bool) (*registries.Registries, error) {
	connector, err := o.registries.Connector()
	if err != nil || connector == nil {
		return nil, err
	}
	asked, err := registries.New(registries.Options{
		Connector: connector, Put: content.PutCatalog, Drop: content.Drop, GlobalNamespace: o.global, Files: files, MaxBytes: o.maxBytes,
	})
	if err != nil {
		return nil, err
	}
	content.Changed = asked.Know
	return asked, nil
}

// load puts the content of NAMESPACE/NAME=PATH, read twice: what describes a bundle is kept of the heads alone.
func load(content *packageserver.Content, value string) (source types.NamespacedName, err error) {
	source, path, err := controllers.CatalogFile(value)
	if err != nil {
		return source, fmt.Errorf("--catalog: %w", err)
	}
	o := fbc.Options{OmitProperties: []string{resolution.PropertyCSVMetadata, resolution.PropertyBundleObject}}
	list, _, err := controllers.ReadCatalog(path, o)
	if err != nil {
		return source, fmt.Errorf("--catalog: %w", err)
	}
	o.OmitNothingOf = packages.Heads(list)
	list, unread, err := controllers.ReadCatalog(path, o)
	if err != nil {
		return source, fmt.Errorf("--catalog: %w", err)
	}
	report(source, append(unread, content.Put(source, list)...))
	return source, nil
}

// report logs what cannot be shown.
func report(source types.NamespacedName, problems []olmcore.Diagnostic) {
	for _, d := range problems {
		slog.Info(printable.OneLine(d.Message), "catalog", source.String(), "reason", d.Reason, "path", d.Path)
	}
}

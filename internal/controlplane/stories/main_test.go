// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// atOnce is how many stories run at the same time: they mostly wait.
const atOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := controlplane.Binary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !flagGiven("test.parallel") {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	log.SetLogger(logr.Discard())
	code := m.Run()
	if err := errors.Join(world.refused(), readmeCounts(), world.stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// refused returns what the manager asked for and had no right to. The namespaces of stories that are over take nothing
// new.
func (c *cluster) refused() (failed error) {
	if c.plane == nil {
		return nil
	}
	requests, err := c.plane.Refused("manager")
	for _, r := range requests {
		if strings.HasSuffix(r.Status.Message, "because it is being terminated") {
			continue
		}
		err = errors.Join(err, fmt.Errorf("%s %s by %s: %s", r.Verb, r.URI, r.User.Username, r.Status.Message))
	}
	return err
}

func flagGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// managerConfig is how the manager connects: a user with the rights of the manifests alone.
func managerConfig(plane *controlplane.ControlPlane) (*rest.Config, error) {
	return plane.AsManager(context.Background(), "manager")
}

// options are those of the manager: everything is on, and it waits for seconds where minutes are the default.
func options() controllers.Options {
	o := controllers.Options{
		Catalog: catalog.Config{
			NodeUnreachableGrace: 6 * time.Second, NodeNotReadyGrace: 2 * time.Second, NodeGoneGrace: 2 * time.Second,
			OPMImage: opmImage, UtilImage: utilImage, ConfigMapServerImage: configMapServerImage, MinPollInterval: time.Second,
		},
		Connection: contents.connection, Resolve: contents.resolve, Fingerprint: contents.fingerprint, CatalogsOf: contents.known,
		Sweeps: true, Operators: true,
	}
	o.Subscription.MissingGrace = time.Second
	o.InstallPlan.InstallTimeout = 4 * time.Second
	o.InstallPlan.OPMImage, o.InstallPlan.UtilImage = opmImage, utilImage
	o.CSV.InstallTimeout = 20 * time.Second
	return o
}

// Images of the tools that OLM runs.
const (
	opmImage             = "registry.example.com/opm:latest"
	utilImage            = "registry.example.com/util:latest"
	configMapServerImage = "registry.example.com/configmap-server:latest"
)

// cluster is the one that all stories share: a control plane, a node, and a manager.
type cluster struct {
	once sync.Once
	err  error

	plane *controlplane.ControlPlane
	nodes *controlplane.Nodes
	user  *olmdynamic.Cluster // a cluster administrator, who reads what is there now
	*watched
	heard

	ends []func() error
}

var world cluster

// start starts everything, the first time.
func (c *cluster) start() error {
	c.once.Do(func() { c.err = c.run() })
	return c.err
}

func (c *cluster) run() (err error) {
	begun := time.Now()
	if c.plane, err = controlplane.Start(controlplane.Options{NodeMonitorGrace: 5 * time.Minute}); err != nil {
		return err
	}
	c.ends = append(c.ends, c.plane.Stop)
	images := fake.NewCluster(begun) // it says what an image is called
	if c.nodes, err = c.plane.PlayNodes(func(name string) string { return images.Image(name).ID() }); err != nil {
		return err
	}
	c.ends = append(c.ends, c.nodes.Stop)
	config, err := c.plane.As("user")
	if err != nil {
		return err
	}
	if c.user, err = olmdynamic.New(config); err != nil {
		return err
	}
	c.user.FieldValidation = "Strict"
	unpacker, err := newUnpacker(c.plane)
	if err != nil {
		return err
	}
	c.nodes.SetImage(opmImage, controlplane.Image{Run: unpacker.run})
	if err := c.nodes.Add(context.Background(), "node"); err != nil {
		return err
	}
	if err := c.furnish(); err != nil {
		return err
	}
	if c.watched, err = c.watch(config); err != nil {
		return err
	}
	return c.manage()
}

// furnish makes what every cluster with OLM has.
func (c *cluster) furnish() error {
	namespace := &corev1.Namespace{}
	namespace.Name = controllers.DefaultGlobalNamespace
	config := &operatorsv1.OLMConfig{}
	config.Name = "cluster"
	var err error
	for _, o := range []olmcore.Object{namespace, config} {
		o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o))
		err = errors.Join(err, c.user.Do(context.Background(), olmcore.CreateOf(o, byUser)))
	}
	return err
}

// manage starts the manager.
func (c *cluster) manage() error {
	config, err := managerConfig(c.plane)
	if err != nil {
		return err
	}
	mgr, err := olmruntime.New(config, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(20 * time.Second),
	}, olmruntime.Options{Options: options(), FieldValidation: "Strict", OnReport: c.hear})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.ends = append(c.ends, func() error { cancel(); return <-ended })
	return nil
}

// watch starts a cache of the user's own: to look often costs nothing.
func (c *cluster) watch(config *rest.Config) (*watched, error) {
	scheme := newScheme()
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- objects.Start(ctx) }()
	c.ends = append(c.ends, func() error { cancel(); return <-ended })
	return &watched{cache: objects, scheme: scheme, kinds: options().Watched(), live: c.user}, nil
}

// stop ends everything, the last first.
func (c *cluster) stop() error {
	var failed []error
	for i := len(c.ends) - 1; i >= 0; i-- {
		failed = append(failed, c.ends[i]())
	}
	return errors.Join(failed...)
}

// heard is what the manager reported.
type heard struct {
	mu      sync.Mutex
	reports map[string][]controller.Report // by namespace
	last    map[string]time.Time
}

func (h *heard) hear(r controller.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reports == nil {
		h.reports, h.last = map[string][]controller.Report{}, map[string]time.Time{}
	}
	namespace := cmp.Or(r.Key.Namespace, r.Key.Name) // an Operator is named PACKAGE.NAMESPACE
	if _, of, ok := strings.Cut(namespace, "."); ok && r.Key.Namespace == "" {
		namespace = of
	}
	h.reports[namespace] = append(h.reports[namespace], r)
	if len(r.Result.Actions) > 0 || r.Err != nil {
		h.last[namespace] = time.Now()
	}
}

// of returns what was reported about a namespace, and when the manager acted there last.
func (h *heard) of(namespace string) ([]controller.Report, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]controller.Report(nil), h.reports[namespace]...), h.last[namespace]
}

// SPDX-License-Identifier: Apache-2.0

// Package olm puts the four reconcile packages into a fake cluster: the
// controllers that a fake.Driver runs, and around them what an embedder has to
// supply: gRPC connections, a resolver, memory. It is also the shortest complete
// example of embedding the library.
package olm

import (
	"context"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Names of the controllers, as events show them.
const (
	Catalog      = "catalog"
	Subscription = "subscription"
	InstallPlan  = "installplan"
	Sweep        = "sweep"
	Group        = "group"
	CSV          = "csv"
	Operator     = "operator"
)

// DefaultGlobalNamespace is the namespace whose catalogs all namespaces see.
const DefaultGlobalNamespace = "olm"

// OLM holds what the controllers need besides the cluster. The zero value works:
// nobody resolves then. An OLM belongs to one cluster and must not be copied
// after Controllers.
type OLM struct {
	CatalogConfig      catalog.Config
	SubscriptionConfig subscription.Config
	InstallPlanConfig  installplan.Config
	CSVConfig          csv.Config
	// KubernetesVersion is the API server's gitVersion.
	KubernetesVersion string
	// Resolve answers what subscription asks for; nil leaves it unanswered.
	Resolve func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error)
	// Judge answers what installplan.SchemaChanges asks for; nil leaves it
	// unanswered.
	Judge func(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error)
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see;
	// empty means DefaultGlobalNamespace.
	GlobalNamespace string
	// CatalogsOf says what is known of the catalogs of a namespace of Subscriptions,
	// nil for nothing; without it the CatalogSources' own statuses count.
	CatalogsOf func(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error)
	// Disconnected: nobody dials; what catalog asks for in this way stays
	// unanswered.
	Disconnected bool
	// Connection is the state of a real gRPC client, which shall dial address; nil:
	// the clients are played, and connected while a Pod is ready.
	Connection func(source types.NamespacedName, address string) *catalog.Connection
	// Observations returns the versions of a namespace's InstallPlans that a watch
	// delivered since the last call; nil: there is no such watch.
	Observations func(namespace string) []subscription.Observation
	// Sweeps adds the controller that keeps the plans of each namespace in order,
	// Operators the one that keeps the Operator objects.
	Sweeps, Operators bool
	// Asked, when set, hears every request that a reconcile came with.
	Asked func(controller string, key types.NamespacedName, request any)

	connections map[types.NamespacedName]*catalog.Connection
	podHashes   map[types.NamespacedName]string
	namespaces  map[string]*namespace
	checkpoints map[types.NamespacedName]*csv.Checkpoint
}

// namespace is the memory about one namespace of Subscriptions.
type namespace struct {
	histories map[types.UID]subscription.History
	answer    *subscription.Resolved
	planKey   olmcore.Key // of the plan that was asked for last
	asked     string      // the fingerprint of the last request
}

var (
	catalogKind      = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)
	subscriptionKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	installPlanKind  = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
	groupKind        = operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	operatorKind     = operatorsv1.GroupVersion.WithKind("Operator")
	csvKind          = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind)
)

// Controllers returns the controllers for a fake.Driver.
func (o *OLM) Controllers() []fake.Controller {
	o.connections = map[types.NamespacedName]*catalog.Connection{}
	o.podHashes = map[types.NamespacedName]string{}
	o.namespaces = map[string]*namespace{}
	o.checkpoints = map[types.NamespacedName]*csv.Checkpoint{}
	controllers := []fake.Controller{
		{Name: Catalog, Kind: catalogKind.GroupKind(), Keys: fake.KeysOf(catalogKind), Reconcile: o.catalog},
		{Name: Subscription, Kind: subscriptionKind.GroupKind(), Keys: fake.NamespacesOf(subscriptionKind), Reconcile: o.subscription},
		{Name: InstallPlan, Kind: installPlanKind.GroupKind(), Keys: fake.KeysOf(installPlanKind), Reconcile: o.installPlan},
		{Name: Group, Kind: groupKind.GroupKind(), Keys: fake.KeysOf(groupKind), Reconcile: o.group},
		{Name: CSV, Kind: csvKind.GroupKind(), Keys: fake.KeysOf(csvKind), Reconcile: o.csv},
	}
	if o.Sweeps {
		controllers = append(controllers, fake.Controller{
			Name: Sweep, Kind: installPlanKind.GroupKind(), Keys: sweptNamespaces, Reconcile: o.sweep,
		}, o.csvSweeper())
	}
	if o.Operators {
		controllers = append(controllers, fake.Controller{
			Name: Operator, Kind: operatorKind.GroupKind(), Keys: operatorNames, Reconcile: o.operator,
		})
	}
	return controllers
}

// Forget drops all memory, as a restart of the controllers does.
func (o *OLM) Forget() {
	clear(o.connections)
	clear(o.podHashes)
	clear(o.namespaces)
	clear(o.checkpoints)
}

// CatalogsChanged makes every namespace resolve again when it is reconciled next.
func (o *OLM) CatalogsChanged() {
	for _, n := range o.namespaces {
		n.answer, n.asked = nil, ""
	}
}

func (o *OLM) ask(controller string, key types.NamespacedName, request any) {
	if o.Asked != nil {
		o.Asked(controller, key, request)
	}
}

func (o *OLM) catalog(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := catalog.Gather(ctx, r, key, o.CatalogConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.PodHash, in.Connection = now, last, o.podHashes[key], o.connection(key, in, now)
	out, err := catalog.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	o.podHashes[key] = out.PodHash
	if out.Connection.Verb == catalog.ConnectionKeep {
		return out.Result, nil
	}
	o.ask(Catalog, key, out.Connection)
	if out.Connection.Verb == catalog.ConnectionDrop || o.Disconnected {
		delete(o.connections, key)
		return out.Result, nil
	}
	o.connections[key] = &catalog.Connection{Address: out.Connection.Address, State: "CONNECTING", LastTransition: now}
	// The client that plays here knows its state at once.
	in.Connection = o.connection(key, in, now)
	out, err = catalog.Reconcile(in)
	return out.Result, err
}

// connection plays the gRPC client: it is connected while a Pod that the Service
// selects is ready.
func (o *OLM) connection(key types.NamespacedName, in catalog.Input, now time.Time) *catalog.Connection {
	c := o.connections[key]
	if c == nil {
		return nil
	}
	if o.Connection != nil {
		return o.Connection(key, c.Address)
	}
	state := "TRANSIENT_FAILURE"
	for _, pod := range in.Pods {
		if pod.Labels["olm.catalogSource"] == key.Name && isReady(pod) {
			state = "READY"
		}
	}
	next := *c
	if next.State != state {
		next.State, next.LastTransition = state, now
		if state == "READY" {
			next.LastConnect = now
		}
	}
	o.connections[key] = &next
	return &next
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (o *OLM) installPlan(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := installplan.Gather(ctx, r, key, o.InstallPlanConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun = now, last
	if o.Judge != nil {
		changes, err := installplan.SchemaChanges(in)
		if err != nil {
			return olmcore.Result{}, err
		}
		if in.CustomResources, err = o.Judge(ctx, r, changes); err != nil {
			return olmcore.Result{}, err
		}
	}
	result, err := installplan.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	lost, err := installplan.LostBundles(in)
	for _, lookup := range lost {
		if _, err := o.unpack(ctx, r, key.Namespace, lookup, now, &result); err != nil {
			return olmcore.Result{}, err
		}
	}
	return result, err
}

// sweptNamespaces are those that hold plans, or what plans refer to.
func sweptNamespaces(r olmcore.Reader) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, kind := range []schema.GroupVersionKind{subscriptionKind, installPlanKind, catalogKind} {
		keys = append(keys, fake.NamespacesOf(kind)(r)...)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.Namespace, b.Namespace) })
	return slices.Compact(keys)
}

func (o *OLM) sweep(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := installplan.GatherSweep(ctx, r, key.Namespace, o.InstallPlanConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	return installplan.Sweep(in)
}

func (o *OLM) group(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := csv.GatherGroup(ctx, r, key)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	return csv.Group(in)
}

func (o *OLM) csv(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := csv.Gather(ctx, r, key, o.CSVConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.KubernetesVersion, in.Checkpoint = now, last, o.KubernetesVersion, o.checkpoints[key]
	out, err := csv.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	for _, kind := range out.Operands {
		o.ask(CSV, key, kind)
	}
	o.checkpoints[key] = csv.CheckpointOf(in)
	return out.Result, nil
}

// operatorNames are the Operator objects that exist or should.
func operatorNames(r olmcore.Reader) []types.NamespacedName {
	var names []string
	for _, kind := range []schema.GroupVersionKind{operatorKind, subscriptionKind, installPlanKind, csvKind} {
		objects, err := r.List(context.Background(), kind, "", nil)
		if err != nil {
			continue // a kind that is not served has no objects
		}
		for _, o := range objects {
			names = append(names, subscription.OperatorNames(o)...)
		}
	}
	slices.Sort(names)
	var keys []types.NamespacedName
	for _, name := range slices.Compact(names) {
		keys = append(keys, types.NamespacedName{Name: name})
	}
	return keys
}

func (o *OLM) operator(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := subscription.GatherOperator(ctx, r, key.Name)
	if err != nil {
		return olmcore.Result{}, err
	}
	return subscription.Operator(in)
}

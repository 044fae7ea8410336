// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/installplan"
	plansweep "github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
)

// Names of the controllers.
const (
	Catalog      = "catalog"
	Subscription = "subscription"
	InstallPlan  = "installplan"
	// Sweep keeps the InstallPlans of a namespace in order.
	Sweep = "sweep"
	Group = "group"
	CSV   = "csv"
	// Condition keeps the OperatorConditions.
	Condition = "condition"
	// Copies keeps the copies of versions in the namespaces that their operators watch, OLMConfig the condition that says
	// whether they are there.
	Copies    = "copies"
	OLMConfig = "olmconfig"
	// Permissions gives the operators of ClusterServiceVersions their permissions where they watch, and users theirs on
	// the APIs that they provide.
	Permissions = "permissions"
	// CSVSweep looks for what versions and OperatorGroups left behind in the whole cluster.
	CSVSweep = "csvsweep"
	Operator = "operator"
)

// DefaultGlobalNamespace is the namespace whose CatalogSources all namespaces see.
const DefaultGlobalNamespace = "olm"

// Options holds what the controllers need besides a cluster. The zero value works: nothing is resolved then. The tags
// are the keys of the commands' configuration file; a field with the tag "-" can be set in Go only.
type Options struct {
	Catalog      catalog.Config      `json:"catalog,omitzero"`
	Subscription subscription.Config `json:"subscription,omitzero"`
	InstallPlan  installplan.Config  `json:"installPlan,omitzero"`
	CSV          csv.Config          `json:"csv,omitzero"`
	Copies       copies.Config       `json:"copies,omitzero"`
	// Namespaces is a shard: only objects of these namespaces are reconciled, and no work is done that is the whole
	// cluster's. Empty: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// KubernetesVersion is the API server's gitVersion, such as v1.36.2. Without it the image templates of
	// CatalogSources are left alone.
	KubernetesVersion string `json:"-"`
	// IgnoreImageTemplates leaves them alone, too: for callers who only assume the version, such as a dry run.
	IgnoreImageTemplates bool `json:"ignoreImageTemplates,omitempty"`
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see; empty means DefaultGlobalNamespace. It
	// stands for Catalog's GlobalCatalogNamespace where that is empty.
	GlobalNamespace string `json:"globalNamespace,omitempty"`
	// Resolve answers what subscription asks for; nil leaves it unanswered, as ErrPending does for now. Catalogs.Resolve
	// is such a function.
	Resolve func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) `json:"-"`
	// Fingerprint says what an answer depends on besides the Subscriptions: it is the same as long as the answer holds.
	// An answer is dropped when it changes, so that an upgrade which waits for the old operator to go does not wait for
	// ever. Catalogs.Fingerprint is such a function; nil keeps answers until the catalogs or the Subscriptions change,
	// also when a ClusterServiceVersion is deleted that they took for granted.
	Fingerprint func(ctx context.Context, r olmcore.Reader, namespace string) (string, error) `json:"-"`
	// Judge answers what installplan.Outcome.SchemaChanges asks for; nil leaves it unanswered: no plan is refused for
	// custom resources. What crvalidation.Live returns is such a function, and needs to list them: see Rights.
	Judge func(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) `json:"-"`
	// Issuer makes the certificates that operators serve with; nil: selfsigned.Issuer, as OLM does.
	Issuer Issuer `json:"-"`
	// Connection returns the state of the gRPC client of a CatalogSource, which shall dial address from now on; with an
	// empty address there shall be no client. Of a CatalogSource that is gone the Input has only namespace and name. A
	// shard asks for the clients of the global catalogs, too. nil: there is none; catalogs are judged by their Pods, and
	// those at an address by what their status tells.
	Connection func(in catalog.Input, address string) *catalog.Connection `json:"-"`
	// Watch, when set, delivers the changes that no watch of the cluster does, until ctx ends: of CatalogSources whose
	// connection or content changed. Each queue calls it, to hand them to its Runner's Changed. The changes are to be
	// handled fast.
	Watch func(ctx context.Context, changed func(Change)) `json:"-"`
	// CatalogsOf says what is known of the catalogs of a namespace of Subscriptions, nil for nothing; without it the
	// CatalogSources' own statuses count.
	CatalogsOf func(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) `json:"-"`
	// Sweeps adds the controllers Sweep and CSVSweep, Operators the one that keeps the Operator objects.
	Sweeps    bool `json:"sweeps,omitempty"`
	Operators bool `json:"operators,omitempty"`
	// Live says that Readers are no caches but the API server, or a copy of all it has: an InstallPlan that they do not
	// find does not exist.
	Live bool `json:"-"`
	// Asked, when set, hears every request that a reconcile came with.
	Asked func(controller string, key types.NamespacedName, request any) `json:"-"`
}

// ReconcileFunc gathers and decides about one key; last is what became of the last actions.
type ReconcileFunc func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error)

// Controller is a reconcile function with all around it that does not depend on who runs it. Different keys may run at
// the same time.
type Controller struct {
	Name string
	// Kinds are the kinds of the objects that are reconciled.
	Kinds []schema.GroupVersionKind
	// KeysOf returns the keys that an object of these kinds stands for: itself, or its namespace, as a key without a name.
	KeysOf func(o olmcore.Object) []types.NamespacedName
	// Always are the keys that there are whatever the cluster holds.
	Always []types.NamespacedName
	// Affected returns the keys to reconcile after a change of an object of any kind; those with an empty name or
	// namespace stand for all: see olmcore.ExpandKeys.
	Affected func(o olmcore.Object) []types.NamespacedName
	// Every is how often a key is reconciled although nothing changed; 0: never.
	Every time.Duration
	// Reconcile gathers and decides. NotFound means that the object is gone.
	Reconcile ReconcileFunc

	// namespaces are those of the shard; empty: all.
	namespaces []string
	// inPlace: the keys of each object are of its own namespace.
	inPlace bool
	// concerns, when set, returns which objects a change concerns that counts for all by itself; old may be nil. The error
	// is of reading who has to do with it.
	concerns func(ctx context.Context, r olmcore.Reader, old, next olmcore.Object) (concern, error)
	// notice, when set, hears what watches deliver.
	notice func(old, next olmcore.Object, deleted bool, now time.Time)
}

// Keys lists the keys that there are, sorted. The error is the reader's; a kind that is not served has no objects.
func (c Controller) Keys(ctx context.Context, r olmcore.Reader) ([]types.NamespacedName, error) {
	return c.keys(ctx, r, []string{""}, everyone)
}

// keys are those of the objects in some namespaces, "" for all, that something concerns.
func (c Controller) keys(ctx context.Context, r olmcore.Reader, namespaces []string, of concern) ([]types.NamespacedName, error) {
	keys := slices.Clone(c.Always)
	for _, kind := range c.Kinds {
		for _, namespace := range namespaces {
			objects, err := of.asked(ctx, r, kind, namespace)
			if olmcore.Classify(err) == olmcore.NoMatch {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				if of.Is(o) {
					keys = append(keys, c.KeysOf(o)...)
				}
			}
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return c.ours(slices.Compact(keys)), nil
}

// Set is the controllers of one cluster and what they remember. It is safe for concurrent use.
type Set struct {
	Controllers []Controller

	options    *Options
	known      []*memory[types.NamespacedName, known] // of each controller
	namespaces namespaces
}

// New returns the controllers, with an empty memory. Which there are is settled here; the other options are read at
// each reconcile, and may be changed while none runs.
func New(o *Options) *Set {
	s := &Set{options: o, namespaces: namespaces{known: map[string]*namespace{}}}
	s.Controllers = []Controller{
		{Name: Catalog, Kinds: kinds(catalogKind), KeysOf: itself, inPlace: true, Affected: catalog.Affected, Reconcile: s.remembering(s.catalog)},
		{Name: Subscription, Kinds: kinds(subscriptionKind), KeysOf: itsNamespace, inPlace: true, Affected: s.local(subscriptionAffected), Reconcile: s.remembering(s.subscription), concerns: subscriptionsConcerned, notice: s.notice},
		{Name: InstallPlan, Kinds: kinds(installPlanKind), KeysOf: itself, inPlace: true, Affected: s.local(installplan.Affected), Reconcile: s.remembering(s.installPlan), concerns: without(plansConcerned)},
		{Name: Group, Kinds: kinds(groupKind), KeysOf: itself, inPlace: true, Affected: operatorgroup.Affected, Reconcile: s.remembering(groupOf)},
		{Name: CSV, Kinds: kinds(csvKind), KeysOf: originals, inPlace: true, Affected: csv.Affected, Reconcile: s.remembering(s.csv), concerns: without(versionsConcerned)},
		{Name: Condition, Kinds: kinds(conditionKind, csvKind), KeysOf: originals, inPlace: true, Affected: operatorcondition.Affected, Reconcile: s.remembering(s.condition)},
		{Name: Copies, Kinds: kinds(csvKind), KeysOf: itsSource, Affected: copies.Affected, Reconcile: s.remembering(s.copies), concerns: without(sourcesConcerned)},
		{Name: OLMConfig, Kinds: kinds(configKind), KeysOf: itself, Affected: copies.AffectedConfigs, Every: copies.ConfigInterval, Reconcile: s.remembering(s.config)},
		{Name: Permissions, Kinds: kinds(csvKind), KeysOf: originals, inPlace: true, Affected: permissions.Affected, Reconcile: s.remembering(permissionsOf), concerns: without(operatorsConcerned)},
	}
	if o.Sweeps {
		s.Controllers = append(s.Controllers,
			Controller{Name: Sweep, Kinds: kinds(subscriptionKind, installPlanKind, catalogKind), KeysOf: itsNamespace, inPlace: true, Affected: s.local(plansweep.Affected), Reconcile: s.remembering(s.sweep), concerns: without(sweepsConcerned)},
			Controller{
				Name: CSVSweep, Kinds: kinds(csvKind, groupKind), KeysOf: theCluster, Always: theCluster(nil),
				Affected: sweepAffected, Every: sweepInterval, Reconcile: s.remembering(s.sweepCSVs),
			})
	}
	if o.Operators {
		s.Controllers = append(s.Controllers, Controller{
			Name: Operator, Kinds: kinds(operatorKind, subscriptionKind, installPlanKind, csvKind),
			KeysOf: component.Affected, Affected: component.Affected, Reconcile: s.remembering(operatorOf),
		})
	}
	for i := range s.Controllers {
		c := &s.Controllers[i]
		c.namespaces = o.Namespaces
		if c.Name == Catalog && o.Connection != nil && !o.ours(o.globalNamespace()) {
			c.namespaces = append(slices.Clone(o.Namespaces), o.globalNamespace()) // see Set.catalog
		}
		c.Always = c.ours(c.Always)
	}
	return s
}

var (
	catalogKind      = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)
	subscriptionKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	installPlanKind  = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
	groupKind        = operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	operatorKind     = operatorsv1.GroupVersion.WithKind("Operator")
	conditionKind    = operatorsv2.GroupVersion.WithKind("OperatorCondition")
	configKind       = operatorsv1.GroupVersion.WithKind("OLMConfig")
	csvKind          = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind)
)

func kinds(all ...schema.GroupVersionKind) []schema.GroupVersionKind { return all }

func itself(o olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// originals are all objects but copies of versions that nothing holds: about these the controller Copies decides.
func originals(o olmcore.Object) []types.NamespacedName {
	c, is := o.(*v1alpha1.ClusterServiceVersion)
	if is && c.IsCopied() && len(c.Finalizers) == 0 {
		return nil
	}
	return itself(o)
}

// itsSource is the original of a copy, and an original itself.
func itsSource(o olmcore.Object) []types.NamespacedName {
	if c, is := o.(*v1alpha1.ClusterServiceVersion); is {
		return []types.NamespacedName{copies.Source(c)}
	}
	return nil
}

func itsNamespace(o olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: o.GetNamespace()}}
}

// theCluster is the one key of a controller that looks at everything.
func theCluster(olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Name: "cluster"}}
}

// sweepInterval is how often the whole cluster is looked at for leftovers whose owner was deleted during a downtime.
const sweepInterval = 10 * time.Minute

// sweepAffected: leftovers come to be when a version, no copy of one, or a group goes.
func sweepAffected(o olmcore.Object) []types.NamespacedName {
	kind := olmcore.GVKOf(o)
	c, is := o.(*v1alpha1.ClusterServiceVersion)
	if is && c.IsCopied() {
		return nil
	}
	if o.GetDeletionTimestamp() == nil || kind != csvKind && kind != groupKind {
		return nil
	}
	return theCluster(o)
}

// Forget drops all memory, as a restart does.
func (s *Set) Forget() {
	for _, of := range s.known {
		of.clear()
	}
	s.namespaces.clear()
}

func (s *Set) ask(controller string, key types.NamespacedName, request any) {
	if s.options.Asked != nil {
		s.options.Asked(controller, key, request)
	}
}

// memory is a map that different keys may use at the same time.
type memory[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

func (m *memory[K, V]) get(key K) V {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.values[key]
}

func (m *memory[K, V]) set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
}

func (m *memory[K, V]) drop(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

func (m *memory[K, V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values = nil
}

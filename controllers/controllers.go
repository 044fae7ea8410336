// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
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
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
)

// Names of the controllers.
const (
	Catalog      = "catalog"
	Subscription = "subscription"
	InstallPlan  = "installplan"
	// Sweep deletes InstallPlans that are no longer needed.
	Sweep = "sweep"
	Group = "group"
	CSV   = "csv"
	// Condition creates and updates the OperatorConditions.
	Condition = "condition"
	// Copies copies ClusterServiceVersions to the namespaces that their operators watch. OLMConfig sets the condition that
	// reports whether all copies exist.
	Copies    = "copies"
	OLMConfig = "olmconfig"
	// Permissions grants the operators of ClusterServiceVersions their permissions in the namespaces that they watch, and
	// users the permissions on the APIs that the operators provide.
	Permissions = "permissions"
	// CSVSweep finds the objects that deleted ClusterServiceVersions and OperatorGroups left behind in the cluster.
	CSVSweep = "csvsweep"
	Operator = "operator"
)

// DefaultGlobalNamespace is the namespace whose CatalogSources are available in all namespaces.
const DefaultGlobalNamespace = "olm"

// Options configures the controllers. The zero value works, but resolves no Subscriptions. The tags are the keys of the
// configuration file of the commands. A field with the tag "-" can be set only in Go.
type Options struct {
	Catalog      catalog.Config      `json:"catalog,omitzero"`
	Subscription subscription.Config `json:"subscription,omitzero"`
	InstallPlan  installplan.Config  `json:"installPlan,omitzero"`
	CSV          csv.Config          `json:"csv,omitzero"`
	Copies       copies.Config       `json:"copies,omitzero"`
	// Namespaces makes this Set a shard: it reconciles only objects in these namespaces, and does no cluster-wide work. If
	// it is empty, all namespaces are reconciled.
	Namespaces []string `json:"namespaces,omitempty"`
	// KubernetesVersion is the gitVersion of the API server, such as v1.36.2. If it is empty, image templates of
	// CatalogSources are not evaluated.
	KubernetesVersion string `json:"-"`
	// IgnoreImageTemplates disables image templates although KubernetesVersion is set. It is for callers that only assume
	// the version, such as a dry run.
	IgnoreImageTemplates bool `json:"ignoreImageTemplates,omitempty"`
	// GlobalNamespace is the namespace whose CatalogSources are available in all namespaces. Empty means
	// DefaultGlobalNamespace. It is also the default of GlobalCatalogNamespace in Catalog.
	GlobalNamespace string `json:"globalNamespace,omitempty"`
	// Resolve resolves the requests of package subscription. If it is nil, or returns ErrPending, a request stays
	// unresolved for now. Catalogs.Resolve is such a function.
	Resolve func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) `json:"-"`
	// Fingerprint returns a text that changes when a Resolution of the namespace may no longer hold, for reasons other
	// than its Subscriptions. The Resolution is then dropped, so that an upgrade that waits for the removal of an operator
	// continues. Catalogs.Fingerprint is such a function. If it is nil, a Resolution is kept until catalogs or
	// Subscriptions change, even if a ClusterServiceVersion that it relies on is deleted.
	Fingerprint func(ctx context.Context, r olmcore.Reader, namespace string) (string, error) `json:"-"`
	// Judge validates custom resources against changed schemas, as installplan.Outcome.SchemaChanges requests. If it is
	// nil, no InstallPlan is rejected because of custom resources. crvalidation.Live returns such a function, which must
	// be allowed to list custom resources: see Rights.
	Judge func(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) `json:"-"`
	// Issuer issues the serving certificates of operators. nil means selfsigned.Issuer, as in OLM.
	Issuer Issuer `json:"-"`
	// Connection returns the state of the gRPC client of a CatalogSource, and makes the client dial address. If address is
	// empty, the client is closed. If the CatalogSource was deleted, its Input has only namespace and name. A shard also
	// calls it for global catalogs. If it is nil, there are no clients: a catalog is judged by its Pods, and one with an
	// address by its status.
	Connection func(in catalog.Input, address string) *catalog.Connection `json:"-"`
	// Watch, if set, delivers changes that no watch of the cluster reports, until ctx ends: CatalogSources whose
	// connection or content changed. Each queue calls it once and passes the changes to Runner.Changed. changed must
	// return quickly.
	Watch func(ctx context.Context, changed func(controller.Change)) `json:"-"`
	// CatalogsOf returns the states of the catalogs that are available to a namespace of Subscriptions, or nil if they are
	// unknown. If it is nil, the statuses of the CatalogSources are used.
	CatalogsOf func(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) `json:"-"`
	// Sweeps enables the controllers Sweep and CSVSweep. Operators enables the controller Operator.
	Sweeps    bool `json:"sweeps,omitempty"`
	Operators bool `json:"operators,omitempty"`
	// Live is true if Readers read from the API server or from a complete copy, not from caches. An InstallPlan that they
	// do not find then does not exist.
	Live bool `json:"-"`
	// Asked, if set, is called with every request of a reconcile.
	Asked func(controller string, key types.NamespacedName, request any) `json:"-"`
}

// Set contains the controllers of one cluster and their memory. It is safe for concurrent use. Controllers may be
// changed before Runners is called.
type Set struct {
	Controllers []controller.Controller

	options    *Options
	known      []*memory[types.NamespacedName, known] // of each controller
	namespaces namespaces
}

// New returns the controllers with an empty memory. The options decide here which controllers there are. The other
// options are read at each reconcile, and may be changed while no reconcile is running.
func New(o *Options) *Set {
	s := &Set{options: o, namespaces: namespaces{known: map[string]*namespace{}}}
	s.Controllers = alwaysOf(s)
	if o.Sweeps {
		s.Controllers = append(s.Controllers, sweepsOf(s)...)
	}
	if o.Operators {
		s.Controllers = append(s.Controllers, controller.Controller{
			Name: Operator, Kinds: kinds(operatorKind, subscriptionKind, installPlanKind, csvKind),
			KeysOf: component.Affected, Affected: component.Affected, Reconcile: s.remembering(operatorOf),
		})
	}
	for i := range s.Controllers {
		c := &s.Controllers[i]
		c.Namespaces = o.Namespaces
		if c.Name == Catalog && o.Connection != nil && !o.ours(o.globalNamespace()) {
			c.Namespaces = append(slices.Clone(o.Namespaces), o.globalNamespace()) // see Set.catalog
		}
		c.Always = slices.DeleteFunc(c.Always, func(k types.NamespacedName) bool { return !o.ours(k.Namespace) })
	}
	return s
}

// alwaysOf returns the controllers that every Set has.
func alwaysOf(s *Set) []controller.Controller {
	return []controller.Controller{
		{
			Name: Catalog, Kinds: kinds(catalogKind), SameNamespace: true,
			Affected: catalog.Affected, Reconcile: s.remembering(s.catalog),
		},
		{
			Name: Subscription, Kinds: kinds(subscriptionKind), KeysOf: controller.NamespaceKey, SameNamespace: true,
			Affected: s.local(subscriptionAffected), Concerned: concerned(subscriptionsConcerned), OnChange: s.onChange,
			Reconcile: s.remembering(s.subscription),
		},
		{
			Name: InstallPlan, Kinds: kinds(installPlanKind), SameNamespace: true,
			Affected: s.local(installplan.Affected), Concerned: concerned(without(plansConcerned)), Reconcile: s.remembering(s.installPlan),
		},
		{
			Name: Group, Kinds: kinds(groupKind), SameNamespace: true,
			Affected: operatorgroup.Affected, Reconcile: s.remembering(groupOf),
		},
		{
			Name: CSV, Kinds: kinds(csvKind), KeysOf: originals, SameNamespace: true,
			Affected: csv.Affected, Concerned: concerned(without(versionsConcerned)), Reconcile: s.remembering(s.csv),
		},
		{
			Name: Condition, Kinds: kinds(conditionKind, csvKind), KeysOf: originals, SameNamespace: true,
			Affected: operatorcondition.Affected, Reconcile: s.remembering(s.condition),
		},
		{
			Name: Copies, Kinds: kinds(csvKind), KeysOf: itsSource,
			Affected: copies.Affected, Concerned: concerned(without(sourcesConcerned)), Reconcile: s.remembering(s.copies),
		},
		{
			Name: OLMConfig, Kinds: kinds(configKind),
			Affected: copies.AffectedConfigs, Every: copies.ConfigInterval, Reconcile: s.remembering(s.config),
		},
		{
			Name: Permissions, Kinds: kinds(csvKind), KeysOf: originals, SameNamespace: true,
			Affected: permissions.Affected, Concerned: concerned(without(operatorsConcerned)), Reconcile: s.remembering(permissionsOf),
		},
	}
}

// sweepsOf returns the controllers of Options.Sweeps.
func sweepsOf(s *Set) []controller.Controller {
	return []controller.Controller{
		{
			Name: Sweep, Kinds: kinds(subscriptionKind, installPlanKind, catalogKind), KeysOf: controller.NamespaceKey, SameNamespace: true,
			Affected: s.local(plansweep.Affected), Concerned: concerned(without(sweepsConcerned)), Reconcile: s.remembering(s.sweep),
		},
		{
			Name: CSVSweep, Kinds: kinds(csvKind, groupKind), KeysOf: theCluster, Always: theCluster(nil),
			Affected: sweepAffected, Every: sweepInterval, Reconcile: s.remembering(s.sweepCSVs),
		},
	}
}

// Runners returns a Runner for each controller of the Set, over one cluster.
func (s *Set) Runners(r olmcore.Reader, x olmcore.Executor) []*controller.Runner {
	runners := make([]*controller.Runner, len(s.Controllers))
	for i, c := range s.Controllers {
		runners[i] = &controller.Runner{Controller: c, Reader: r, Executor: x}
	}
	return runners
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

// originals returns the key of an object, or no key for a copied ClusterServiceVersion without finalizers: the
// controller Copies reconciles it.
func originals(o olmcore.Object) []types.NamespacedName {
	c, is := o.(*v1alpha1.ClusterServiceVersion)
	if is && c.IsCopied() && len(c.Finalizers) == 0 {
		return nil
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// itsSource returns the key of the original of a ClusterServiceVersion, which may be the object itself.
func itsSource(o olmcore.Object) []types.NamespacedName {
	if c, is := o.(*v1alpha1.ClusterServiceVersion); is {
		return []types.NamespacedName{copies.Source(c)}
	}
	return nil
}

// theCluster returns the one key of a controller that reconciles the whole cluster.
func theCluster(olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Name: "cluster"}}
}

// sweepInterval is how often the cluster is searched for leftovers whose owner was deleted during a downtime.
const sweepInterval = 10 * time.Minute

// sweepAffected returns the key of the cluster if the deletion of an object may leave something behind: of a
// ClusterServiceVersion that is not copied, or of an OperatorGroup.
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

// Forget drops the memory of all controllers, as a restart does.
func (s *Set) Forget() {
	for _, of := range s.known {
		of.clear()
	}
	s.namespaces.clear()
}

func (s *Set) ask(name string, key types.NamespacedName, request any) {
	if s.options.Asked != nil {
		s.options.Asked(name, key, request)
	}
}

// memory is a map that is safe for concurrent use.
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

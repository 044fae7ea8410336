// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/polling"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// mode is how far a CatalogSource can be carried out.
type mode int

const (
	modeImage     mode = iota // Pods of an image
	modeConfigMap             // Pods that serve a ConfigMap
	modeAddress               // a registry of others, at an address
	modeDeleting              // it or its namespace is being deleted
	modeInvalid               // bad spec
	modeBlocked               // something is missing, or its name is taken
)

// standing is whether a CatalogSource is carried out, and why not.
type standing struct {
	mode mode
	// reason and message say why it is not; both are empty for the first three modes.
	reason, message string
	// legacy is OLM's word for it, in status.reason; path is the field of a bad spec.
	legacy v1alpha1.ConditionReason
	path   string
}

// runsPods reports whether the catalog is served by Pods of its own.
func (s standing) runsPods() bool { return s.mode == modeImage || s.mode == modeConfigMap }

// is reports whether the CatalogSource is not carried out for a reason.
func (s standing) is(reason string) bool { return s.reason == reason }

// facts are an Input, observed and classified. They are read-only.
type facts struct {
	now      time.Time
	source   *v1alpha1.CatalogSource
	set      settings
	standing standing
	// registry is what the objects around the Pods are made from, and needed what should
	// be; objects are the observed ones with the names that the catalog uses, taken is
	// the name of one that is unmanaged or owned by another.
	registry  registry.Registry
	needed    registry.Objects
	objects   registry.Objects
	unread    registry.Unread
	taken     string
	configMap *corev1.ConfigMap
	pods      pods.List
	// ignoreNodes: the Nodes are not to be read.
	nodes       olmcore.Observed[*corev1.Node]
	ignoreNodes bool

	poll polling.Schedule
	link link
	// connection is the caller's client, observed all Pods that were read.
	connection *Connection
	observed   []*corev1.Pod
	lastRun    olmcore.LastResults
	resolved   string
}

// observe classifies an Input. The classes of Pods are those of the table.
func observe(in *Input, table pods.Table) facts {
	cs := in.CatalogSource
	f := facts{
		now: in.Now, source: cs, set: in.Config.settings(cs), objects: findObjects(in), configMap: configMapOf(in),
		unread: registry.Unread{
			NetworkPolicies: !in.NetworkPolicies.Complete, Roles: !in.Roles.Complete,
			RoleBindings: !in.RoleBindings.Complete, Budgets: !in.PodDisruptionBudgets.Complete,
		},
		nodes: in.Nodes, ignoreNodes: in.Config.IgnoreNodes, connection: in.Connection, observed: in.Pods.Items, lastRun: in.LastRun, resolved: in.ResolvedDigest,
	}
	f.standing = standingOf(in, f.objects.Service)
	f.registry = newRegistry(in, f.set, f.standing.mode)
	o := pods.Observation{
		Now: in.Now, Source: cs, Pods: in.Pods.Items, Nodes: in.Nodes, Graces: f.set.graces, Deadline: f.set.deadline,
		OneContent: f.standing.mode == modeConfigMap,
	}
	if f.standing.runsPods() {
		f.registry = f.registry.For(f.objects.Account)
		o.IsCurrent = f.registry.Current
	}
	if f.standing.runsPods() || f.standing.mode == modeBlocked {
		f.needed = f.registry.Objects()
		f.taken = registry.Taken(cs, f.objects, f.needed)
	}
	f.pods = o.Observe(table)
	if f.standing.runsPods() || f.standing.mode == modeAddress {
		f.poll = polling.Observe(cs, f.pods, f.set.pollLeast, in.Jitter, in.Now)
		f.poll.Problem = quoted(f.poll.Problem)
	}
	f.link = observeLink(in.Connection, cs.Status.GRPCConnectionState, f.address(), in.Now)
	return f
}

// left returns how long it is until grace has passed since t; 0 or less when it has.
func (f *facts) left(t time.Time, grace time.Duration) time.Duration { return t.Add(grace).Sub(f.now) }

// usable returns the Nodes on which a new Pod could run.
func (f *facts) usable() []*corev1.Node {
	return pods.Schedulable(f.nodes.Items, f.source.Spec.GrpcPodConfig)
}

// recorded returns a condition of the status; nil when there is none.
func (f *facts) recorded(kind string) *metav1.Condition {
	return meta.FindStatusCondition(f.source.Status.Conditions, kind)
}

// recordedNow is recorded for conditions of the present generation.
func (f *facts) recordedNow(kind string) *metav1.Condition {
	if c := f.recorded(kind); c != nil && c.ObservedGeneration == f.source.Generation {
		return c
	}
	return nil
}

// address is what the client shall dial; empty while it is unknown.
//
// Differs: an image wins over spec.address, as the API says.
func (f *facts) address() string {
	switch {
	case f.standing.mode == modeAddress:
		return f.source.Spec.Address
	case f.standing.runsPods() && f.objects.Service != nil:
		return f.registry.Address()
	}
	return ""
}

func configMapOf(in *Input) *corev1.ConfigMap {
	cm, cs := in.ConfigMap, in.CatalogSource
	if registry.FromConfigMap(cs) && cm != nil && cm.Name == cs.Spec.ConfigMap && cm.Namespace == cs.Namespace {
		return cm
	}
	return nil
}

func standingOf(in *Input, service *corev1.Service) standing {
	cs := in.CatalogSource
	spec, bad := &cs.Spec, checkSpec(cs)
	blocked := func(reason, message string) standing {
		return standing{mode: modeBlocked, reason: reason, message: message, legacy: v1alpha1.CatalogSourceRegistryServerError}
	}
	switch {
	case cs.DeletionTimestamp != nil,
		in.Namespace != nil && (in.Namespace.DeletionTimestamp != nil || in.Namespace.Status.Phase == corev1.NamespaceTerminating):
		return standing{mode: modeDeleting, reason: ReasonDeleting, message: "the catalog is being deleted"}
	case bad.message != "":
		return standing{mode: modeInvalid, reason: ReasonSpecInvalid, message: bad.message, legacy: bad.reason, path: bad.path}
	case spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image == "":
		return standing{mode: modeAddress}
	case in.Namespace == nil && securityContext(cs) == "":
		return blocked(ReasonNamespaceUnknown, "the namespace was not found, so the security context of the pods is unknown")
	case service != nil && registry.ClaimOf(cs, service) == registry.ClaimOther:
		return blocked(ReasonNameConflict, "the service of the catalog's name is unmanaged or owned by another")
	case !registry.FromConfigMap(cs):
		return standing{mode: modeImage}
	case configMapOf(in) == nil:
		name := clip(spec.ConfigMap, 253)
		s := blocked(ReasonConfigMapMissing, "failed to get catalog config map "+name+": configmaps \""+name+"\" not found")
		s.legacy = v1alpha1.CatalogSourceConfigMapError
		return s
	}
	return standing{mode: modeConfigMap}
}

// securityContext is the one that the spec asks for, empty when the namespace decides.
func securityContext(cs *v1alpha1.CatalogSource) v1alpha1.SecurityConfig {
	if c := cs.Spec.GrpcPodConfig; c != nil {
		return c.SecurityContextConfig
	}
	return ""
}

const labelPodSecurity = "pod-security.kubernetes.io/enforce"

func newRegistry(in *Input, set settings, m mode) registry.Registry {
	cs, config := in.CatalogSource, in.Config
	restricted := securityContext(cs) == v1alpha1.Restricted
	if securityContext(cs) == "" {
		restricted = in.Namespace != nil && in.Namespace.Labels[labelPodSecurity] == "restricted"
	}
	r := registry.Registry{
		Source: cs, Restricted: restricted, Replicas: set.replicas, SpreadHosts: set.hosts, Resources: set.resources,
		OPMImage: cmp.Or(config.OPMImage, DefaultOPMImage), UtilImage: cmp.Or(config.UtilImage, DefaultUtilImage),
		ServerImage: cmp.Or(config.ConfigMapServerImage, DefaultConfigMapServerImage),
		UserID:      cmp.Or(config.WorkloadUserID, DefaultWorkloadUserID), StartupFailures: config.StartupFailureThreshold,
	}
	if m == modeConfigMap {
		r.ConfigMap = configMapOf(in)
	}
	return r
}

// findObjects finds the objects with the names that the catalog uses.
func findObjects(in *Input) registry.Objects {
	cs := in.CatalogSource
	service := registry.ServiceName(cs.Name)
	o := registry.Objects{
		Account:      named(in.ServiceAccounts, cs, cs.Name),
		OtherAccount: named(in.ServiceAccounts, cs, cs.Name+registry.SuffixAccount),
		Role:         named(in.Roles, cs, cs.Name+registry.SuffixRole),
		RoleBinding:  named(in.RoleBindings, cs, cs.Name+registry.SuffixBinding),
		ServerPolicy: named(in.NetworkPolicies, cs, cs.Name+registry.SuffixServerPolicy),
		UnpackPolicy: named(in.NetworkPolicies, cs, cs.Name+registry.SuffixUnpackPolicy),
		Service:      named(in.Services, cs, service),
		Budget:       named(in.PodDisruptionBudgets, cs, service),
	}
	if registry.FromConfigMap(cs) {
		o.Account, o.OtherAccount = o.OtherAccount, o.Account
	}
	return o
}

// named returns the object of a name in the namespace of the CatalogSource.
func named[O olmcore.Object](list olmcore.Observed[O], cs *v1alpha1.CatalogSource, name string) (found O) {
	for _, o := range list.Items {
		if o.GetNamespace() == cs.Namespace && o.GetName() == name {
			return o
		}
	}
	return found
}

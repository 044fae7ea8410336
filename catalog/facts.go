// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// facts contains what is observed in an Input. Rules, conditions and actions follow from it. It is read-only after
// observe has returned it.
type facts struct {
	in      *Input     // as the caller passed it
	classes []podClass // the table of Pod classes
	now     time.Time
	source  *v1alpha1.CatalogSource
	// config is Input.Config with the defaults and the annotations of the CatalogSource applied.
	config Config
	// badAnnotations are the annotations that cannot be used.
	badAnnotations []string

	standing   standing
	registry   registry.Registry // the objects around the Pods, observed and needed
	conflict   string            // which needed object is unmanaged or owned by another; empty if none is
	pods       pods
	missing    int // how many Pods of the present spec must be added
	poll       pollSchedule
	pollPods   pollPods
	connection connection
}

// observe returns the facts of an Input.
func observe(in *Input, classes []podClass) *facts {
	f := observeCluster(in, classes)
	f.connection = f.observeConnection()
	return f
}

// observeCluster returns the facts without the connection.
func observeCluster(in *Input, classes []podClass) *facts {
	f := &facts{in: in, classes: classes, now: in.Now, source: in.CatalogSource}
	f.config, f.badAnnotations = in.Config.effective(in.CatalogSource)
	f.registry = f.observeRegistry()
	f.standing = f.observeStanding()
	if f.standing.runsPods() || f.standing.mode == modeBlocked {
		f.registry.Complete()
		if name := f.registry.Taken(); name != "" {
			f.conflict = name + " is unmanaged or owned by another"
		}
	}
	f.pods = f.observePods()
	f.missing = f.countMissing()
	if f.standing.runsPods() || f.standing.mode == modeAddress {
		f.poll = f.observePoll()
		f.pollPods = f.observePollPods()
	}
	return f
}

// predict returns the facts at a later time if nothing changes until then. The gRPC client stays as it is now,
// because a difference between two clocks does not make it older.
func predict(f *facts, at time.Time) *facts {
	in := *f.in
	in.Now = at
	later := observeCluster(&in, f.classes)
	connection := f.connection
	connection.changesIn = 0
	later.connection = later.withFailure(connection, f.now)
	return later
}

// isFuture reports whether a time is later than any clock within olmcore.ClockTolerance can show now.
func isFuture(at, now time.Time) bool { return at.After(now.Add(olmcore.ClockTolerance)) }

// changesIn returns the time until the facts may change without an event. 0: never.
func (f *facts) changesIn() time.Duration {
	next := olmcore.Nearest(f.poll.changesIn, f.connection.changesIn)
	if f.standing.reason == ReasonConfigMapMissing {
		next = olmcore.Nearest(next, time.Minute) // OLM watches only some ConfigMaps, and so may the caller
	}
	for _, p := range f.pods.all {
		next = olmcore.Nearest(next, p.changesIn)
		if p.role == roleCandidate && p.class.Live && !p.ready {
			next = olmcore.Nearest(next, p.readyLeft)
		}
	}
	return next
}

// serves reports whether clients of the catalog get an answer.
func (f *facts) serves() bool {
	if f.standing.mode == modeAddress {
		return f.connection.isConnected()
	}
	return f.standing.runsPods() && len(f.pods.serving.ready()) > 0
}

// recorded returns a condition of the recorded status, or nil.
func (f *facts) recorded(kind string) *metav1.Condition {
	return meta.FindStatusCondition(f.source.Status.Conditions, kind)
}

// recordedForSpec returns a condition that was recorded for the present spec, or nil.
func (f *facts) recordedForSpec(kind string) *metav1.Condition {
	c := f.recorded(kind)
	if c == nil || c.ObservedGeneration != f.source.Generation {
		return nil
	}
	return c
}

// address returns the address that the client should connect to. It is empty while the address is unknown.
//
// Differs: an image takes precedence over spec.address, as the API documents it.
func (f *facts) address() string {
	switch {
	case f.standing.mode == modeAddress:
		return f.source.Spec.Address
	case f.standing.runsPods() && f.registry.Observed.Service != nil:
		return f.registry.Address()
	}
	return ""
}

// countMissing returns how many Pods must be added so that as many Pods as configured stay ready. A Pod that is about
// to be evicted is treated as missing if another Node could run its replacement.
func (f *facts) countMissing() int {
	missing := f.config.Replicas
	for _, p := range f.pods.current {
		if !p.class.Leaving || !hasOtherNode(f, p) {
			missing--
		}
	}
	return missing
}

// hasOtherNode reports whether a new Pod could run on another Node than a Pod.
func hasOtherNode(f *facts, p *pod) bool {
	for _, n := range f.usableNodes() {
		if n.Name != p.Spec.NodeName {
			return true
		}
	}
	return false
}

// labelPodSecurity is the label of a Namespace with the Pod security standard that it enforces.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// observeRegistry returns the registry with its observed objects.
func (f *facts) observeRegistry() registry.Registry {
	cs := f.source
	restricted := securityContext(cs) == v1alpha1.Restricted
	if securityContext(cs) == "" && f.in.Namespace != nil {
		restricted = f.in.Namespace.Labels[labelPodSecurity] == "restricted"
	}
	return registry.Registry{
		Source:          cs,
		ConfigMap:       f.usedConfigMap(),
		Restricted:      restricted,
		Replicas:        f.config.Replicas,
		SpreadHosts:     spreadConstraints[f.config.Spread],
		Resources:       *f.config.Resources,
		OPMImage:        f.config.OPMImage,
		UtilImage:       f.config.UtilImage,
		ServerImage:     f.config.ConfigMapServerImage,
		UserID:          f.config.WorkloadUserID,
		StartupFailures: f.config.StartupFailureThreshold,
		Observed:        f.observeObjects(),
		Unread: registry.Unread{
			NetworkPolicies: !f.in.NetworkPolicies.Complete,
			Roles:           !f.in.Roles.Complete,
			RoleBindings:    !f.in.RoleBindings.Complete,
			Budgets:         !f.in.PodDisruptionBudgets.Complete,
		},
	}
}

// observeObjects finds the objects with the names that the CatalogSource uses.
func (f *facts) observeObjects() registry.Objects {
	in, cs := f.in, f.source
	o := registry.Objects{
		Account:      findByName(in.ServiceAccounts, cs, cs.Name),
		OtherAccount: findByName(in.ServiceAccounts, cs, cs.Name+registry.SuffixAccount),
		Role:         findByName(in.Roles, cs, cs.Name+registry.SuffixRole),
		RoleBinding:  findByName(in.RoleBindings, cs, cs.Name+registry.SuffixBinding),
		ServerPolicy: findByName(in.NetworkPolicies, cs, cs.Name+registry.SuffixServerPolicy),
		UnpackPolicy: findByName(in.NetworkPolicies, cs, cs.Name+registry.SuffixUnpackPolicy),
		Service:      findByName(in.Services, cs, registry.ServiceName(cs.Name)),
		Budget:       findByName(in.PodDisruptionBudgets, cs, registry.ServiceName(cs.Name)),
	}
	if registry.FromConfigMap(cs) {
		o.Account, o.OtherAccount = o.OtherAccount, o.Account
	}
	return o
}

func findByName[O olmcore.Object](list olmcore.Observed[O], cs *v1alpha1.CatalogSource, name string) (found O) {
	for _, o := range list.Items {
		if o.GetNamespace() == cs.Namespace && o.GetName() == name {
			return o
		}
	}
	return found
}

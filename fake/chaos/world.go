// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

// The namespaces of a history: tenants with operators of their own, one with operators for all namespaces, one whose
// operator watches two, one who attacks, and one whose objects have nothing to do with OLM.
const (
	namespace   = "ops"
	otherTenant = "db"
	everywhere  = "operators"
	platform    = "platform"
	attacker    = "evil"
	victim      = "victim"
)

var (
	tenants  = []string{namespace, otherTenant, everywhere, platform}
	packages = []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"} // gamma needs what alpha provides
	// watchedBy are the target namespaces that a tenant's OperatorGroup has at first, nil for all.
	watchedBy = map[string][]string{namespace: {namespace}, otherTenant: {otherTenant}, platform: {otherTenant, platform}}
	// wanted are the packages that the users of a namespace subscribe to: never to
	// one that a dependency brings a Subscription for.
	wanted = map[string][]string{
		namespace: {"beta", "gamma"}, otherTenant: {"alpha", "beta"}, everywhere: {"delta", "epsilon"}, platform: {"zeta"},
	}
)

// Figures count what happened. Certificates were issued, Renewals took the place of one that neared its end, Orphans
// are what nothing owns in the end.
type Figures struct {
	Histories, Steps, Reconciles, Writes, Effects, Faults, Crashes, Errors, InvalidInputs  int
	Plans, Completed, Approvals, Published, Deletions, Downtimes, ClockJumps, NodeFailures int
	Withdrawn, Refusals, OptionChanges                                                     int
	Attacks, Spoils, Certificates, Renewals, OtherCertificates, Orphans, Checks            int
	Simulated                                                                              time.Duration
}

// Add adds the figures of another history.
func (f *Figures) Add(other *Figures) {
	sum, more := reflect.ValueOf(f).Elem(), reflect.ValueOf(other).Elem()
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

// Setting says what a history begins with, and who does what in it.
type Setting struct {
	// Approves: users approve every plan they see. Without it that is left to a controller of yours.
	Approves bool
	// Serves: operators that the API server calls are installed at the beginning. Then time does not go on while one of
	// their certificates is about to end, and only the library changes who calls them.
	Serves bool
	// Sweeps: the sweep deletes what was left behind; else it reports it.
	Sweeps bool
	// Deletes: administrators delete what they like, so that nothing is sure to be installed in the end.
	Deletes bool
	// Attacks: a tenant attacks.
	Attacks bool
	// Spoils: a user spoils what operators need to serve and to be seen.
	Spoils bool
	// Races: InstallPlans overtake each other. Versions are published and withdrawn while plans run, writes of their steps
	// are refused for minutes, the cache of one kind stands still while the others go on, and the clocks of the managers
	// differ by no more than ClockTolerance.
	Races bool
	// Separates: an InstallPlan is made for each set of Subscriptions that depend on each other. An administrator changes
	// that, and the managers restart with the new value one after the other.
	Separates bool
}

// Options are the parts of a history that are yours. The zero value is OLM alone, where only Automatic Subscriptions
// come to anything.
type Options struct {
	Setting
	// Objects are there from the beginning, CRDs before what they define. Their namespaces are made.
	Objects []olmcore.Object
	// Controllers run in each manager beside OLM's, with its cache, its clock, its faults and its restarts: it is called
	// whenever a manager starts, and what the controllers remember goes with them.
	Controllers func() []controller.Controller
	// Steps happen besides those of this package.
	Steps []Step
	// Check is called after each step, and at every instant of Heal and RunFor: what must never be. An error ends the
	// history.
	Check func(h *History) error
	// AfterAction is called after each write of a manager, done or failed, with the time on the manager's clock. An error
	// ends the history.
	AfterAction func(controller.Event) error
	// Figures count what happens; several histories may share them. nil: they have their own.
	Figures *Figures
	// Tells: what happened is kept for Story.
	Tells bool
}

// History is one cluster, the managers that look after it, and what happened.
type History struct {
	Cluster *fake.Cluster
	Figures *Figures
	// Options are those that the history was made with.
	Options Options
	Setting
	managers []*manager
	// offers are the versions of each package that the catalog offers, content is what it is made of.
	offers  map[string]*offer
	content *resolution.Catalog
	// targets are the target namespaces of each tenant's OperatorGroup.
	targets map[string][]string
	safety  *invariant.Safety
	checked string
	// untouched are the objects that nothing has a reason to write, by key, with their resourceVersions.
	untouched map[olmcore.Key]string
	// certificates are those that Pods of the tenants may serve with, by Secret, the present one last.
	certificates map[olmcore.Key][]seenCertificate
	// isSeparate is the value of the option SeparatePlans with which a manager starts.
	isSeparate bool
	// issuerFails: no certificates are issued at this time.
	issuerFails bool
	// policy: the API server refuses changes of who calls operators at this time.
	policy bool
	// races is what a history with Races remembers.
	races races
	// connects: gRPC clients connect, which a CatalogSource says.
	connects bool
	problem  error
	wakes    int // in the present RunFor
	// log tells what happened, in a history that tells; a refusal is told once.
	log     []string
	refused map[string]bool
}

// logged is how many lines of a history are kept: of its beginning, and of its end.
const logged = 150

// New returns the beginning of a history: a cluster of two nodes with a catalog, the tenants' OperatorGroups and what
// is Yours, and two managers that have just started. What is wrong with it is the error of the first Do.
func New(o Options) *History {
	h := &History{
		Cluster: fake.NewCluster(beginning), Figures: cmp.Or(o.Figures, &Figures{}), Setting: o.Setting, Options: o,
		isSeparate: o.Separates, offers: map[string]*offer{}, targets: maps.Clone(watchedBy), refused: map[string]bool{},
		certificates: map[olmcore.Key][]seenCertificate{},
	}
	h.Figures.Histories++
	c := h.Cluster
	c.AutoCreateNamespaces = true
	c.Authorize = authorize
	c.Webhooks = c.Serving().Webhooks(nil)
	h.safety = &invariant.Safety{Cluster: c}
	h.races = newRaces()
	for _, p := range packages {
		h.offers[p] = &offer{channel: "stable", versions: []version{{number: 1}}}
	}
	h.build()
	h.must(c.Node("a").Create(nil))
	h.must(c.Node("b").Create(nil))
	h.must(c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}))
	createCatalog(h)
	for _, ns := range tenants {
		h.createGroup(ns)
	}
	createVictims(h)
	h.must(c.Settle())
	h.remember()
	for _, mine := range o.Objects {
		h.must(c.Create(mine))
		h.must(c.Settle())
	}
	for i := range 2 {
		m := &manager{history: h, name: fmt.Sprint("manager ", i)}
		m.catalogs = controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{}}
		m.view = c.View(m.name)
		h.managers = append(h.managers, m)
		m.start()
	}
	if h.Serves {
		installServing(h)
	}
	if h.Races {
		startRaces(h)
	}
	return h
}

// Do lets a step happen, and looks for what must never be. The error is the first that there was in this history, and
// stays.
func (h *History) Do(s Step, c Choices) error {
	if h.problem != nil {
		return h.problem
	}
	h.Figures.Steps++
	if s.Name != working {
		h.say("%s", s.Name)
	}
	s.Do(h, c)
	h.check()
	return h.problem
}

// Tenants returns the namespaces of those who subscribe to operators.
func Tenants() []string { return slices.Clone(tenants) }

// Attacker is the namespace of the tenant who attacks.
const Attacker = attacker

// beginning is when every history begins.
var beginning = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// authorize lets a ServiceAccount write in its own namespace only.
func authorize(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
	if as == nil || target.Namespace == as.Namespace {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New("not in this namespace"))
}

func createCatalog(h *History) {
	_ = h.Cluster.Create(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogKey.Namespace, Name: catalogKey.Name},
		Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
			GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
	})
}

func (h *History) createGroup(ns string) {
	_ = h.Cluster.Create(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: h.targets[ns]},
	})
}

// createVictims makes what no operator of this world has a reason to touch, and
// the namespace of the attacker, whose OperatorGroup is the administrator's.
func createVictims(h *History) {
	c := h.Cluster
	crd := operators.Bundle("helm", 1)[1].DeepCopyObject().(olmcore.Object)
	h.must(c.Create(crd))
	h.must(c.Settle())
	helm := func(ns, name string) olmcore.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1")
		u.SetKind("helm")
		u.SetNamespace(ns)
		u.SetName(name)
		return u
	}
	h.must(c.Create(
		helm(victim, "precious"),
		helm(namespace, "precious"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "settings"}, Data: map[string]string{"a": "b"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "token"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "robot"}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "door"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "role"}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "precious"},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "precious"},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "precious"},
		},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "weak"}},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "group"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{attacker}, ServiceAccountName: "weak"},
		},
	))
}

// remember notes the objects that must stay as they are.
func (h *History) remember() {
	h.untouched = map[olmcore.Key]string{}
	for _, o := range h.Cluster.Objects() {
		key := olmcore.KeyOf(o)
		if o.GetNamespace() == victim || o.GetName() == "precious" || o.GetName() == "helms.example.com" {
			h.untouched[key] = o.GetResourceVersion()
		}
	}
}

// must notes an error that no history may have.
func (h *History) must(err error) {
	if err != nil && h.problem == nil {
		h.problem = err
	}
}

func (h *History) say(format string, args ...any) {
	if !h.Options.Tells {
		return
	}
	if len(h.log) >= 2*logged {
		h.log = append(h.log[:logged], h.log[logged+1:]...)
	}
	h.log = append(h.log, h.Cluster.Now().Format("02T15:04:05 ")+fmt.Sprintf(format, args...))
}

func (h *History) number(m *manager) int { return slices.Index(h.managers, m) }

func (h *History) note(m *manager, a olmcore.Action, err error) {
	if !h.Options.Tells {
		return
	}
	verb, target, cause := a.Describe()
	patch := ""
	if record, err := olmcore.RecordOf(a); err == nil {
		patch = string(record.Patch)
	}
	if err != nil {
		if text := fmt.Sprint(verb, target, err); h.refused[text] {
			return
		} else {
			h.refused[text] = true
		}
		patch = err.Error()
	}
	h.say("  manager %d: %s %s (%s) %.300s", h.number(m), verb, target, cause.Reason, patch)
}

// check looks for what must never happen.
func (h *History) check() {
	if h.problem != nil || h.checked == h.Cluster.ResourceVersion() {
		return
	}
	h.checked = h.Cluster.ResourceVersion()
	noteCertificates(h)
	h.Figures.Checks++
	h.must(h.safety.Check())
	if h.Options.Check != nil {
		h.must(h.Options.Check(h))
	}
	checkServing(h)
	checkRights(h)
	checkRaces(h)
	for key, version := range h.untouched {
		o, err := h.Cluster.Get(context.Background(), schema.GroupVersionKind{Group: key.Group, Kind: key.Kind}, key.Namespace, key.Name)
		switch {
		case err != nil:
			h.must(fmt.Errorf("%s, which is unmanaged, is gone: %w", key, err))
		case o.GetDeletionTimestamp() != nil:
			h.must(fmt.Errorf("%s, which is unmanaged, is being deleted", key))
		case key.Kind != "Namespace" && key.Kind != "CustomResourceDefinition" && o.GetResourceVersion() != version:
			h.must(fmt.Errorf("%s, which is unmanaged, was changed: %+v", key, o))
		}
	}
}

// Story tells what happened, if Options say so, what there is of OLM's objects, and what a new manager says of them,
// which is the end of the history.
func (h *History) Story() []string {
	lines := slices.Clone(h.log)
	for _, o := range h.Cluster.Objects() {
		text := fmt.Sprintf(
			"%s created %s deleted %s by %v: ",
			olmcore.KeyOf(o),
			o.GetCreationTimestamp().Format("02T15:04:05"),
			o.GetDeletionTimestamp(),
			o.GetFinalizers(),
		)
		switch o := o.(type) {
		case *v1alpha1.Subscription:
			text += fmt.Sprintf("%+v", o.Status)
		case *v1alpha1.InstallPlan:
			text += fmt.Sprintf("%s %s %v %v %v", o.Status.Phase, o.Status.Message, o.Spec.ClusterServiceVersionNames, o.Annotations, o.OwnerReferences)
		case *v1alpha1.ClusterServiceVersion:
			text += fmt.Sprintf("%s %s %s, replaces %s", o.Status.Phase, o.Status.Reason, o.Status.Message, o.Spec.Replaces)
		case *operatorsv1.OperatorGroup:
			text += fmt.Sprintf("%v", o.Status.Namespaces)
		default:
			continue
		}
		lines = append(lines, text)
	}
	m := h.managers[0]
	m.start()
	for _, r := range m.runners {
		r.OnReport = func(report controller.Report) { lines = append(lines, "a new manager: "+report.String()) }
	}
	for len(m.queue) > 0 {
		m.work(func(int) int { return 0 })
	}
	return lines
}

func sortedItems(timers map[item]time.Time) []item {
	return slices.SortedFunc(maps.Keys(timers), func(a, b item) int {
		if order := cmp.Or(timers[a].Compare(timers[b]), cmp.Compare(a.runner, b.runner)); order != 0 {
			return order
		}
		return strings.Compare(a.key.String(), b.key.String())
	})
}

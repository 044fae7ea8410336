// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// ClockTolerance is the largest difference between the clocks of two managers in a history with Races.
const ClockTolerance = time.Minute

// races is what a history with Races remembers.
type races struct {
	// refusals are the objects whose writes are refused at this time.
	refusals map[olmcore.Key]refusal
	// kept are the copies that users made ClusterServiceVersions of their own, since the UIDs of their Namespaces.
	kept  map[types.UID]olmcore.Key
	since map[types.UID]types.UID
	// deleted are the registry Pods that served when a manager deleted them, with its number.
	deleted map[types.UID]int
	// unsubscribed are the packages whose Subscriptions users deleted, by namespace.
	unsubscribed map[string]bool
	// disturbed are the namespaces in which users deleted InstallPlans or versions, which may leave half an installation.
	disturbed map[string]bool
	// settings are the versions of the packages' ConfigMaps.
	settings map[olmcore.Key]int
	// trusts is what each client of an operator trusted, and since when.
	trusts map[string][]trust
}

type refusal struct {
	until time.Time
	err   error
}

func newRaces() races {
	return races{refusals: map[olmcore.Key]refusal{}, kept: map[types.UID]olmcore.Key{}, since: map[types.UID]types.UID{},
		deleted: map[types.UID]int{}, settings: map[olmcore.Key]int{}, unsubscribed: map[string]bool{},
		disturbed: map[string]bool{}, trusts: map[string][]trust{}}
}

// raceSteps are the steps of a history with Races. They are many compared with the others, so that the same things
// happen to one object soon after each other.
func raceSteps() []Step {
	all := []Step{
		{Name: "a manager works for a while", Weight: 150, Do: stepBusy},
		{Name: "a manager reads the catalog", Weight: 60, Do: func(h *History, r Choices) { pick(r, h.managers).readCatalog() }},
		{Name: "the cache of a kind stands still", Weight: 40, Do: stepFreeze},
		{Name: "versions are published", Weight: 25, Do: stepPublishSome},
		{Name: "a version is withdrawn or comes back", Weight: 8, Do: stepWithdraw},
		{Name: "another channel is the default", Weight: 4, Do: stepDefaultChannel},
		{Name: "writes of an object are refused", Weight: 30, Do: stepRefuse},
		{Name: "a refused write is allowed again", Weight: 10, Do: stepAllow},
		{Name: "a namespace cannot be resolved, or can be again", Weight: 6, Do: stepUnresolvable},
		{Name: "a copy becomes a user's own", Weight: 6, Do: stepKeepCopy},
		{Name: "a registry Pod is deleted", Weight: 4, Do: stepDeleteRegistryPod},
		{Name: "a node fails, and heals soon", Weight: 6, Do: stepNode},
		{Name: "a registry Pod is surplus, and a node returns", Weight: 3, Do: stepSurplusPod},
		{Name: "nothing happens for an hour", Weight: 1, Do: stepQuiet},
		{Name: "a new version is deleted", Weight: 40, Only: Setting{Deletes: true}, Do: stepDeleteNewVersion},
		{Name: "any object of OLM is deleted", Weight: 12, Only: Setting{Deletes: true}, Do: stepDeleteAny},
	}
	for i := range all {
		all[i].Only.Races = true
	}
	return all
}

// startRaces subscribes to what the tenants want, and lets half of the histories begin with it installed.
func startRaces(h *History) {
	for _, ns := range []string{namespace, otherTenant} {
		for i, name := range wanted[ns] {
			approval := v1alpha1.ApprovalAutomatic
			if i == 1 {
				approval = v1alpha1.ApprovalManual
			}
			_ = h.Cluster.Create(subscriptionTo(ns, name, approval))
		}
	}
}

func subscriptionTo(ns, name string, approval v1alpha1.Approval) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: catalogKey.Name,
			CatalogSourceNamespace: catalogKey.Namespace, InstallPlanApproval: approval},
	}
}

// racing are the packages that are published and withdrawn: mostly those whose Subscriptions share InstallPlans.
var racing = []string{"alpha", "alpha", "beta", "beta", "gamma", "gamma", "delta", "epsilon", "zeta"}

// stepPublishSome publishes a version of one package or two. One manager may read the catalog at once.
func stepPublishSome(h *History, r Choices) {
	for range 1 + r.IntN(2) {
		if o := h.offers[pick(r, racing)]; len(o.versions) < maxRacingVersions {
			h.Figures.Published++
			o.publish(r.IntN(3) == 0)
		}
	}
	h.newContent(r)
}

// newContent makes the content anew, and lets a manager read it or not.
func (h *History) newContent(r Choices) {
	h.build()
	if r.IntN(2) == 0 {
		pick(r, h.managers).readCatalog()
	}
}

// stepWithdraw takes the newest version of a package out of the catalog, or offers it again.
func stepWithdraw(h *History, r Choices) {
	o := h.offers[pick(r, racing)]
	last := &o.versions[len(o.versions)-1]
	if last.number > 1 {
		h.Figures.Withdrawn++
		last.withdrawn = !last.withdrawn
		h.newContent(r)
	}
}

// stepDefaultChannel makes the other channel of a package the default.
func stepDefaultChannel(h *History, r Choices) {
	o := h.offers[pick(r, racing)]
	if o.channel == "stable" {
		o.channel = "fast"
	} else {
		o.channel = "stable"
	}
	h.newContent(r)
}

// freezable are the kinds of which a cache may stand still, the likeliest more than once.
var freezable = []schema.GroupKind{
	planKind, planKind, subscriptionKind, subscriptionKind, csvKind, csvKind, {Kind: "Pod"}, {Kind: "Pod"}, {Kind: "Node"}, {Kind: "Secret"},
	{Group: v1alpha1.GroupName, Kind: v1alpha1.CatalogSourceKind},
}

var (
	planKind         = schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.InstallPlanKind}
	subscriptionKind = schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.SubscriptionKind}
	csvKind          = schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.ClusterServiceVersionKind}
)

// stepFreeze: a manager's cache of one kind takes in nothing for a while.
func stepFreeze(h *History, r Choices) {
	pick(r, h.managers).frozen[pick(r, freezable)] = h.Cluster.Now().Add(time.Duration(1+r.IntN(120)) * time.Second)
}

// stepRefuse: for some minutes a webhook or a quota refuses the writes of an object that an InstallPlan still has to
// make.
func stepRefuse(h *History, r Choices) {
	var open []olmcore.Key
	for _, p := range listed[*v1alpha1.InstallPlan](h) {
		for _, s := range p.Status.Plan {
			isOpen := s != nil && (s.Status == v1alpha1.StepStatusUnknown || s.Status == v1alpha1.StepStatusNotPresent)
			if isOpen && p.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
				open = append(open, objectOfStep(p, s))
			}
		}
	}
	if len(open) == 0 {
		return
	}
	key := pick(r, open)
	err := pick(r, []error{
		&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: "admission webhook \"guard.example.com\" denied the request: not now"}},
		apierrors.NewForbidden(schema.GroupResource{Group: key.Group, Resource: key.Kind}, key.Name, errors.New("exceeded quota: objects")),
		apierrors.NewInternalError(errors.New("failed calling webhook \"guard.example.com\": connection refused")),
	})
	h.Figures.Refusals++
	h.say("  %s: %v", key, err)
	h.races.refusals[key] = refusal{h.Cluster.Now().Add(time.Duration(1+r.IntN(15)) * time.Minute), err}
}

// objectOfStep returns the object that a step of an InstallPlan makes.
func objectOfStep(p *v1alpha1.InstallPlan, s *v1alpha1.Step) olmcore.Key {
	key := olmcore.Key{Group: s.Resource.Group, Kind: s.Resource.Kind, Namespace: p.Namespace, Name: s.Resource.Name}
	if kind, known := olmcore.KindOf(schema.GroupKind{Group: key.Group, Kind: key.Kind}); known && !kind.Namespaced {
		key.Namespace = ""
	}
	return key
}

func stepAllow(h *History, _ Choices) { clear(h.races.refusals) }

// refuses returns the error with which a write is refused at this time.
func (s *races) refuses(h *History, verb olmcore.Verb, target olmcore.Ref) error {
	refused, is := s.refusals[target.Key()]
	if !is || verb != olmcore.VerbCreate && verb != olmcore.VerbUpdate || !refused.until.After(h.Cluster.Now()) {
		return nil
	}
	return refused.err
}

// nowhere is the name of a Subscription to a package that no catalog has.
const nowhere = "nowhere"

// stepUnresolvable: a user makes a mistake that keeps his namespace from being resolved, or undoes it.
func stepUnresolvable(h *History, r Choices) {
	ns := pick(r, []string{namespace, otherTenant})
	if r.IntN(2) == 0 {
		if h.Cluster.Create(subscriptionTo(ns, nowhere, v1alpha1.ApprovalAutomatic)) != nil {
			_ = h.Cluster.Delete(olmcore.RefOf(subscriptionTo(ns, nowhere, "")))
		}
		return
	}
	_ = fake.Edit(h.Cluster, ns, pick(r, wanted[ns]), func(s *v1alpha1.Subscription) {
		if s.Spec.Channel = "missing"; r.IntN(2) == 0 {
			s.Spec.Channel = "stable"
		}
	})
}

// stepKeepCopy: a user takes from a copy what marks it as one.
func stepKeepCopy(h *History, r Choices) {
	var copies []*v1alpha1.ClusterServiceVersion
	for _, o := range h.Cluster.Objects() {
		if c, is := o.(*v1alpha1.ClusterServiceVersion); is && c.IsCopied() && c.DeletionTimestamp == nil &&
			!slices.Contains(tenants, c.Namespace) &&
			c.Namespace != attacker {
			copies = append(copies, c)
		}
	}
	if len(copies) == 0 {
		return
	}
	c := pick(r, copies)
	h.must(fake.Edit(h.Cluster, c.Namespace, c.Name, func(c *v1alpha1.ClusterServiceVersion) {
		c.Labels, c.Annotations = nil, nil
		c.Status = v1alpha1.ClusterServiceVersionStatus{}
	}))
	h.races.kept[c.UID] = olmcore.KeyOf(c)
	h.races.since[c.UID] = fake.Find[*corev1.Namespace](h.Cluster, "", c.Namespace).UID
}

func registryPods(h *History) (pods []*corev1.Pod) {
	for _, o := range h.Cluster.Objects() {
		if pod, is := o.(*corev1.Pod); is && pod.Namespace == catalogKey.Namespace && pod.Labels["olm.catalogSource"] == catalogKey.Name {
			pods = append(pods, pod)
		}
	}
	return pods
}

func stepDeleteRegistryPod(h *History, r Choices) {
	if pods := registryPods(h); len(pods) > 0 {
		_ = h.Cluster.Delete(olmcore.RefOf(pick(r, pods)).Unversioned())
	}
}

// stepSurplusPod: two registry Pods serve, and one of them is not wanted any more. The node of one has just returned,
// which the cache of one manager does not show. So the managers may prefer different Pods.
func stepSurplusPod(h *History, r Choices) {
	setReplicas := func(replicas string) {
		h.must(fake.Edit(h.Cluster, catalogKey.Namespace, catalogKey.Name, func(c *v1alpha1.CatalogSource) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "olmcore/replicas", replicas)
		}))
	}
	setReplicas("2")
	h.runFor(beforeTheEnd(h, 5*time.Minute))
	m, node := pick(r, h.managers), pick(r, []string{"a", "b"})
	m.sync()
	for _, kind := range []string{"Pod", "Node"} {
		m.frozen[schema.GroupKind{Kind: kind}] = h.Cluster.Now().Add(3 * time.Minute)
	}
	h.Figures.NodeFailures++
	h.must(h.Cluster.Node(node).Fail())
	h.advance(fake.NodeMonitorGrace + time.Second)
	h.must(h.Cluster.Settle())
	h.must(h.Cluster.Node(node).Heal())
	h.advance(time.Duration(1+r.IntN(10)) * time.Second)
	h.must(h.Cluster.Settle())
	setReplicas("1")
}

// stepDeleteAny deletes an object that OLM looks after, or the CatalogSource, which is made again at once.
func stepDeleteAny(h *History, r Choices) {
	var all []olmcore.Object
	for _, o := range h.Cluster.Objects() {
		gk := olmcore.GVKOf(o).GroupKind()
		isOLMs := gk == planKind || gk == subscriptionKind || gk == csvKind
		if isOLMs && o.GetNamespace() != attacker && h.races.kept[o.GetUID()] == (olmcore.Key{}) {
			all = append(all, o)
		}
	}
	if r.IntN(10) == 0 || len(all) == 0 {
		_ = h.Cluster.Delete(
			olmcore.Ref{
				APIVersion: v1alpha1.SchemeGroupVersion.String(),
				Kind:       v1alpha1.CatalogSourceKind,
				Namespace:  catalogKey.Namespace,
				Name:       catalogKey.Name,
			},
		)
		createCatalog(h)
		return
	}
	deleteAsUser(h, pick(r, all))
}

// stepDeleteNewVersion deletes a version whose ClusterRoles exist, and whose status no manager has written yet.
func stepDeleteNewVersion(h *History, r Choices) {
	roles := map[string]bool{}
	for _, o := range h.Cluster.Objects() {
		if role, is := o.(*rbacv1.ClusterRole); is {
			roles[role.Labels["olm.owner.namespace"]+"/"+role.Labels[olmcore.LabelOwner]] = true
		}
	}
	var all []olmcore.Object
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		if c.Status.Phase == v1alpha1.CSVPhaseNone && roles[c.Namespace+"/"+c.Name] {
			all = append(all, c)
		}
	}
	if len(all) > 0 {
		deleteAsUser(h, pick(r, all))
	}
}

// stepQuiet: what is wrong stays wrong, but nothing new happens, and caches are not stale. The managers must not write
// at one instant without end.
func stepQuiet(h *History, _ Choices) { h.runFor(beforeTheEnd(h, time.Hour)) }

// endRaces takes back what users and administrators did, and what the catalog withdrew.
func endRaces(h *History) {
	if !h.Races {
		return
	}
	clear(h.races.refusals)
	for _, m := range h.managers {
		clear(m.frozen)
	}
	for _, ns := range tenants {
		_ = h.Cluster.Delete(olmcore.RefOf(subscriptionTo(ns, nowhere, "")))
	}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		if s.Spec.Channel == "missing" {
			h.must(fake.Edit(h.Cluster, s.Namespace, s.Name, func(s *v1alpha1.Subscription) { s.Spec.Channel = "stable" }))
		}
	}
	for _, o := range h.offers {
		if slices.ContainsFunc(o.versions, func(v version) bool { return v.withdrawn }) {
			o.publish(true)
		}
	}
	h.build()
	createCatalog(h)
	requireKept(h)
	endUnsubscribed(h)
}

// deleteWedged deletes each InstallPlan that is Complete and whose version a user deleted: that is how it is installed
// again.
func deleteWedged(h *History) {
	if !h.Races {
		return
	}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		if s.Status.InstallPlanRef == nil || fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, s.Namespace, s.Status.CurrentCSV) != nil {
			continue
		}
		p := fake.Find[*v1alpha1.InstallPlan](h.Cluster, s.Namespace, s.Status.InstallPlanRef.Name)
		if h.Deletes && p != nil && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete {
			_ = h.Cluster.Delete(olmcore.RefOf(p).Unversioned())
		}
	}
}

// endUnsubscribed deletes the versions whose Subscriptions users deleted, as they have to.
func endUnsubscribed(h *History) {
	followed := followedVersions(h)
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		pkg, _ := packageOf(c.Name)
		if !c.IsCopied() && h.races.unsubscribed[c.Namespace+"/"+pkg] && !followed[c.Namespace+"/"+c.Name] {
			_ = h.Cluster.Delete(olmcore.RefOf(c).Unversioned())
		}
	}
}

// followedVersions are those that a Subscription of their namespace names.
func followedVersions(h *History) map[string]bool {
	followed := map[string]bool{}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		followed[s.Namespace+"/"+s.Status.InstalledCSV] = true
		followed[s.Namespace+"/"+s.Status.CurrentCSV] = true
	}
	return followed
}

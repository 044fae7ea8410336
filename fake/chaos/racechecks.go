// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// checkRaces looks, in a history with Races, for what must never be.
func checkRaces(h *History) {
	if !h.Races {
		return
	}
	h.must(invariant.PlansInOrder(h.Cluster.Objects()))
	checkSettings(h)
	noteTrust(h)
}

// checkSettings requires that the ConfigMap of a package never goes back to an older version while a newer one is
// installed.
func checkSettings(h *History) {
	for _, cm := range listed[*corev1.ConfigMap](h) {
		pkg, is := strings.CutSuffix(cm.Name, settingsSuffix)
		if !is {
			continue
		}
		key := olmcore.KeyOf(cm)
		now, _ := strconv.Atoi(cm.Data["version"])
		before := h.races.settings[key]
		h.races.settings[key] = now
		if now >= before {
			continue
		}
		for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
			if name, number := packageOf(c.Name); c.Namespace == cm.Namespace && name == pkg && number >= before && !c.IsCopied() &&
				c.DeletionTimestamp == nil {
				h.must(fmt.Errorf("%s went from version %d back to %d, and %s exists", key, before, now, c.Name))
			}
		}
	}
}

// packageOf returns the package and the number of a version, by the name that this world gives it.
func packageOf(csv string) (name string, number int) {
	name, version, _ := strings.Cut(csv, ".v")
	major, _, _ := strings.Cut(version, ".")
	number, _ = strconv.Atoi(major)
	return name, number
}

// checkDeletion looks, before a manager deletes an object, for what may not be deleted. It returns the object when it
// is a registry Pod.
func checkDeletion(m *manager, a olmcore.Action) (*corev1.Pod, error) {
	verb, target, _ := a.Describe()
	h := m.history
	if !h.Races || verb != olmcore.VerbDelete {
		return nil, nil
	}
	o, err := h.Cluster.Get(context.Background(), target.GVK(), target.Namespace, target.Name)
	isOther := err == nil && target.UID != "" && target.UID != o.GetUID()
	if err != nil || isOther || target.ResourceVersion != "" && target.ResourceVersion != o.GetResourceVersion() {
		return nil, nil // nothing is deleted
	}
	if _, kept := h.races.kept[o.GetUID()]; kept {
		return nil, fmt.Errorf("manager %d deletes %s, which is no copy any more", h.number(m), olmcore.KeyOf(o))
	}
	pod, is := o.(*corev1.Pod)
	if !is || pod.Namespace != catalogKey.Namespace {
		return nil, nil
	}
	return pod, nil
}

// trust is what a client of an operator trusts, since when.
type trust struct {
	service types.NamespacedName
	bundle  string
	since   time.Time
}

// trustDelay is how long API servers may go on with what a client trusted before it was changed.
const trustDelay = 10 * time.Second

// noteTrust remembers what the clients of operators trust, and what they trusted shortly before.
func noteTrust(h *History) {
	now, seen := h.Cluster.Now(), map[string]bool{}
	note := func(o olmcore.Object, hook, namespace, service string, bundle []byte) {
		key := fmt.Sprint(olmcore.KeyOf(o), " ", o.GetUID(), " ", hook)
		seen[key] = true
		all := h.races.trusts[key]
		if len(all) == 0 || all[len(all)-1].bundle != string(bundle) {
			all = append(all, trust{types.NamespacedName{Namespace: namespace, Name: service}, string(bundle), now})
		}
		for len(all) > 1 && now.Sub(all[1].since) >= trustDelay {
			all = all[1:]
		}
		h.races.trusts[key] = all
	}
	for _, o := range h.Cluster.Objects() {
		switch o := o.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, hook := range o.Webhooks {
				if s := hook.ClientConfig.Service; s != nil {
					note(o, hook.Name, s.Namespace, s.Name, hook.ClientConfig.CABundle)
				}
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, hook := range o.Webhooks {
				if s := hook.ClientConfig.Service; s != nil {
					note(o, hook.Name, s.Namespace, s.Name, hook.ClientConfig.CABundle)
				}
			}
		case *apiregistrationv1.APIService:
			if s := o.Spec.Service; s != nil {
				note(o, "", s.Namespace, s.Name, o.Spec.CABundle)
			}
		}
	}
	maps.DeleteFunc(h.races.trusts, func(key string, _ []trust) bool { return !seen[key] })
}

// checkTrust requires, as a certificate takes the place of one that neared its end, that API servers whose caches are
// trustDelay old trust it.
func checkTrust(h *History, secret *corev1.Secret) {
	name := strings.TrimSuffix(secret.Name, "-service-cert")
	d := fake.Find[*appsv1.Deployment](h.Cluster, secret.Namespace, name)
	if d == nil || h.Cluster.Now().Sub(d.CreationTimestamp.Time) < trustDelay {
		return // no Pod serves, or none did before, and the webhook did not answer anyway
	}
	authority := strings.TrimSpace(string(secret.Data[serving.CAKey]))
	service := types.NamespacedName{Namespace: secret.Namespace, Name: name + "-service"}
	for _, key := range slices.Sorted(maps.Keys(h.races.trusts)) {
		all := h.races.trusts[key]
		for i, t := range all {
			isForgotten := i+1 < len(all) && h.Cluster.Now().Sub(all[i+1].since) >= trustDelay
			if t.service == service && !isForgotten && !strings.Contains(t.bundle, authority) {
				h.must(fmt.Errorf("the Pods of %s serve with a certificate that %s trusts for less than %s", service, key, trustDelay))
			}
		}
	}
}

// isServing reports whether a registry Pod is ready, and stays.
func isServing(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// noteDeletion requires, after a manager deleted a registry Pod that serves, that another one serves unless it died by
// itself: two managers must not each delete the Pod that the other one keeps.
func noteDeletion(m *manager, a olmcore.Action, before *corev1.Pod) error {
	h := m.history
	if before == nil || !isServing(before) {
		return nil
	}
	h.races.deleted[before.UID] = h.number(m)
	for _, pod := range registryPods(h) {
		if pod.UID != before.UID && isServing(pod) {
			return nil
		}
	}
	seen, err := olmcore.List[*corev1.Pod](context.Background(), m.view, catalogKey.Namespace, nil)
	for _, pod := range seen {
		other, deleted := h.races.deleted[pod.UID]
		if pod.UID != before.UID && isServing(pod) && deleted && other != h.number(m) {
			_, _, cause := a.Describe()
			return fmt.Errorf("no registry Pod serves any more: manager %d deleted %s, and manager %d deleted %s (%s: %s)",
				other, pod.Name, h.number(m), before.Name, cause.Reason, cause.Message)
		}
	}
	return err
}

// requireKept: what users made of copies is there, unless its namespace went. Then they take it away, as copies have no
// place where it is.
func requireKept(h *History) {
	for uid, key := range h.races.kept {
		o, err := h.Cluster.Get(context.Background(), schema.GroupVersionKind{Group: key.Group, Kind: key.Kind}, key.Namespace, key.Name)
		ns := fake.Find[*corev1.Namespace](h.Cluster, "", key.Namespace)
		if err == nil && o.GetUID() == uid {
			_ = h.Cluster.Delete(olmcore.RefOf(o).Unversioned())
		} else if ns != nil && ns.DeletionTimestamp == nil && h.races.since[uid] == ns.UID {
			h.must(fmt.Errorf("%s, which is no copy any more, is gone", key))
		}
	}
	clear(h.races.kept)
}

// requireFollowed: in the end each version in the namespaces of tenants is that of a Subscription, and the only one of
// its package; and each Subscription has the newest version.
func requireFollowed(h *History) {
	if !h.Races {
		return
	}
	followed, versions := followedVersions(h), map[string]string{}
	for _, c := range listed[*v1alpha1.ClusterServiceVersion](h) {
		if c.IsCopied() {
			continue
		}
		pkg, _ := packageOf(c.Name)
		isLeft := h.races.disturbed[c.Namespace] || h.races.unsubscribed[c.Namespace+"/"+pkg]
		other := versions[c.Namespace+"/"+pkg]
		switch {
		case other != "" && !isLeft:
			h.must(fmt.Errorf("%s and %s are side by side in namespace %s in the end: %s %s",
				other, c.Name, c.Namespace, c.Status.Phase, c.Status.Reason))
		case !followed[c.Namespace+"/"+c.Name] && !isLeft:
			h.must(fmt.Errorf("no Subscription follows %s/%s in the end, which is %s", c.Namespace, c.Name, c.Status.Phase))
		}
		versions[c.Namespace+"/"+pkg] = c.Name
	}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		requireHead(h, s)
	}
}

// isDisturbed reports whether users deleted InstallPlans, versions or Subscriptions of a namespace. A version whose
// Subscription was deleted stays, and may keep its namespace from being resolved.
func isDisturbed(h *History, namespace string) bool {
	isUnsubscribed := func(key string) bool { return strings.HasPrefix(key, namespace+"/") }
	return h.races.disturbed[namespace] || slices.ContainsFunc(slices.Collect(maps.Keys(h.races.unsubscribed)), isUnsubscribed)
}

// requireFinishedPlans: in the end each InstallPlan has ended. Only in a namespace that cannot be resolved because of
// what users deleted may a plan go on waiting for a Subscription that references it.
func requireFinishedPlans(h *History) {
	if !h.Races {
		return
	}
	referenced := map[string]*v1alpha1.Subscription{}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		if s.Status.InstallPlanRef != nil {
			referenced[s.Namespace+"/"+s.Status.InstallPlanRef.Name] = s
		}
	}
	for _, p := range listed[*v1alpha1.InstallPlan](h) {
		s := referenced[p.Namespace+"/"+p.Name]
		hasEnded := p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
		if !hasEnded && (s == nil || !isDisturbed(h, p.Namespace) || !hasCause(h, s)) {
			h.must(fmt.Errorf("InstallPlan %s/%s is %q in the end: %s", p.Namespace, p.Name, p.Status.Phase, p.Status.Message))
		}
	}
}

// requireHead requires that a Subscription has the newest version, or says why not.
func requireHead(h *History, s *v1alpha1.Subscription) {
	head := operators.Name(s.Spec.Package, h.offers[s.Spec.Package].head())
	pending := s.Status.GetCondition(v1alpha1.SubscriptionInstallPlanPending)
	if s.Status.State == v1alpha1.SubscriptionStateAtLatest && pending.Status == corev1.ConditionTrue {
		h.must(fmt.Errorf("%s/%s is AtLatestKnown and waits for its InstallPlan in the end: %s", s.Namespace, s.Name, pending.Reason))
	}
	c := fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, s.Namespace, head)
	hasHead := s.Status.State == v1alpha1.SubscriptionStateAtLatest && s.Status.InstalledCSV == head
	if hasHead && c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return
	}
	// A stuck version is not upgraded. What a version without a Subscription owns of the cluster may be in the way of any
	// namespace.
	isStuck := slices.ContainsFunc(stuck(h), func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.Namespace == s.Namespace && (c.Name == head || c.Name == s.Status.InstalledCSV)
	})
	if isDisturbed(h, s.Namespace) && hasCause(h, s) || isStuck && (isDisturbed(h, s.Namespace) || len(h.races.unsubscribed) > 0) {
		return
	}
	phase := v1alpha1.ClusterServiceVersionPhase("absent")
	if c != nil {
		phase = c.Status.Phase
	}
	h.must(fmt.Errorf("%s/%s does not reach %s, which is %s, in the end: %s, installed %s, %+v", s.Namespace, s.Name, head, phase,
		s.Status.State, s.Status.InstalledCSV, s.Status))
}

// causes are the conditions that say why a Subscription does not have the newest version.
var causes = []v1alpha1.SubscriptionConditionType{v1alpha1.SubscriptionResolutionFailed, v1alpha1.SubscriptionInstallPlanFailed,
	v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.SubscriptionBundleUnpackFailed}

// hasCause reports whether a Subscription, or another one of its namespace, says what is in the way. A namespace is
// resolved as a whole.
func hasCause(h *History, of *v1alpha1.Subscription) bool {
	for _, s := range listed[*v1alpha1.Subscription](h) {
		for _, kind := range causes {
			if s.Namespace == of.Namespace && s.Status.GetCondition(kind).Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

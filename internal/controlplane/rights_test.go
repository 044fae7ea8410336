// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/internal/controlplane"
)

// rightsUsed collects the rights that the managers of all tests used.
var rightsUsed usedRights

type usedRights struct {
	mu   sync.Mutex
	used sets.Set[string]
}

func (u *usedRights) add(t testing.TB, plane *controlplane.ControlPlane) {
	requests, err := plane.Requests("")
	require.NoError(t, err)
	requests = slices.DeleteFunc(requests, func(r controlplane.Request) bool { return !strings.HasPrefix(r.User.Username, "manager-") })
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used = u.used.Union(controlplane.RightsUsed(requests))
}

// unusedRights says why the manager has rights that no request of the tests here needs, by the beginnings of what they
// are for. What package fake/olm does with them, TestTheWholeWorld holds against the same table.
var unusedRights = map[string]string{
	"*/": "steps of kinds that a CustomResourceDefinition of another operator defines",

	"/configmaps ": "bundle images are unpacked, as in package stories, and ConfigMaps of bundles kept up to date",
	"batch/jobs ":  "bundle images are unpacked, as in package stories",
	"/events ":     "the audit log leaves Events out", "events.k8s.io/events ": "the audit log leaves Events out",
	"/pods patch": "the new Pod of a catalog that was polled becomes the active one",

	"/secrets delete": "what very old versions of OLM made", "/services delete": "what very old versions of OLM made, and catalogs that change their type",
	"rbac.authorization.k8s.io/roles delete": "what very old versions of OLM made, and permissions that are withdrawn",
	"/serviceaccounts delete":                "catalogs that change their type",
	"networking.k8s.io/networkpolicies ":     "catalogs that change their type, and policies that somebody else changed",
	"policy/poddisruptionbudgets ":           "catalogs with several replicas, and steps of that kind",
	"scheduling.k8s.io/priorityclasses ":     "steps of that kind",
	"console.openshift.io/":                  "kinds of OpenShift",

	"operators.coreos.com/catalogsources patch":             "image templates",
	"operators.coreos.com/catalogsources/finalizers update": "asked for by the admission plugin OwnerReferencesPermissionEnforcement, without a request",
	"operators.coreos.com/installplans delete":              "old plans are swept once there are more than five",
	"operators.coreos.com/operatorconditions patch":         "component labels, and operators whose accounts change",
	"operators.coreos.com/operatorconditions update":        "handed out to operators, by their Roles",
	"operators.coreos.com/operators":                        "Options.Operators, which is on in package stories",
	"operators.coreos.com/subscriptions create":             "dependencies that come with a Subscription",

	"rbac.authorization.k8s.io/clusterroles bind":     "asked for when a binding is written, without a request",
	"rbac.authorization.k8s.io/roles bind":            "asked for when a binding is written, without a request",
	"rbac.authorization.k8s.io/clusterroles escalate": "asked for when a role is written: see TestAManagerSaysWhatItMayNotDo",
	"rbac.authorization.k8s.io/roles escalate":        "asked for when a role is written: see TestAManagerSaysWhatItMayNotDo",
}

// unused returns the rights of the manager that neither a test used nor unusedRights names.
func (u *usedRights) unused() (unused []string) {
	roles, err := controlplane.ManagerRoles()
	if err != nil {
		return []string{err.Error()}
	}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					right := fmt.Sprintf("%s/%s %s", rule.APIGroups[0], resource, verb)
					excused := func(prefix string) bool { return strings.HasPrefix(right, prefix) }
					// Which way of reading a client takes is its own affair.
					reads := slices.Contains(reading, verb) && u.used.HasAny(ofResource(right, reading)...)
					if !u.used.Has(right) && !reads && !slices.ContainsFunc(sets.List(sets.KeySet(unusedRights)), excused) {
						unused = append(unused, right)
					}
				}
			}
		}
	}
	slices.Sort(unused)
	return unused
}

var reading = []string{"get", "list", "watch"}

// ofResource returns rights of the same resource for other verbs.
func ofResource(right string, verbs []string) (rights []string) {
	resource, _, _ := strings.Cut(right, " ")
	for _, verb := range verbs {
		rights = append(rights, resource+" "+verb)
	}
	return rights
}

// TestAManagerSaysWhatItMayNotDo: without one of its rights an installation waits, says which one, and goes on with it.
func TestAManagerSaysWhatItMayNotDo(t *testing.T) {
	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute})
	roles, err := controlplane.ManagerRoles()
	require.NoError(t, err)
	lesser := roles[0].DeepCopy()
	for i, rule := range lesser.Rules {
		lesser.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "escalate" })
	}
	require.NotEqual(t, roles[0].Rules, lesser.Rules)
	w.roles = []*rbacv1.ClusterRole{lesser}
	publish(t, map[string]int{"alpha": 1})
	namespaces(t, w, "olm", "ops")
	w.addNode("a")
	w.start(1)
	create(t, w, catalogSource(), operatorGroup("ops"), subscribe("ops", "alpha", v1alpha1.ApprovalAutomatic))
	w.until("a step is refused", func() bool {
		return slices.ContainsFunc(w.done(), func(r report) bool { return r.controller == "installplan" && isForbidden(r.err) })
	})
	refused, err := w.plane.Refused("manager-")
	require.NoError(t, err)
	require.NotEmpty(t, refused)
	for _, r := range refused {
		require.Regexp(t, "is attempting to grant RBAC permissions not currently held|must have cluster-admin privileges to use the aggregationRule", r.Status.Message)
	}
	_, err = w.plane.AsManager(t.Context(), "manager-0")
	require.NoError(t, err)
	w.until("it is installed", subscriptionIs(t, w, "ops", "alpha", v1alpha1.SubscriptionStateAtLatest, csvName("alpha", 1)))
}

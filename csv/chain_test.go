// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// link returns versions by name that replace each other as edges say: "a>b" is an a that replaces b. Later names are
// newer.
func link(edges ...string) map[string]*v1alpha1.ClusterServiceVersion {
	all := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, edge := range edges {
		name, replaces, _ := strings.Cut(edge, ">")
		c := operator(name, int(name[0]-'a'))
		c.Spec.CustomResourceDefinitions.Owned, c.Labels = nil, nil
		c.Spec.Replaces = replaces
		hold(c, pending, "RequirementsUnknown", "requirements not yet checked", time.Hour)
		all[name] = c
	}
	return all
}

// from returns the Input of one of the linked versions. All its requirements are met.
func from(all map[string]*v1alpha1.ClusterServiceVersion, name string) csv.Input {
	in := input(pending, "RequirementsUnknown", "")
	in.ClusterServiceVersion = all[name]
	for other, c := range all {
		if other != name {
			in.Neighbours.Items = append(in.Neighbours.Items, c)
		}
	}
	slices.SortFunc(in.Neighbours.Items, func(a, b *v1alpha1.ClusterServiceVersion) int { return strings.Compare(a.Name, b.Name) })
	return in
}

// predecessorIn returns the name of the version that another one waits for, according to its status.
func predecessorIn(all map[string]*v1alpha1.ClusterServiceVersion, name string) string {
	a, _ := csv.Assess(from(all, name))
	rest, waits := strings.CutPrefix(a.Message, "requirements met; waiting for ")
	if !waits {
		return "" // nothing comes before it
	}
	predecessor, _, _ := strings.Cut(rest, " ")
	return predecessor
}

// OLM's cases: a CSV that replaces itself has no predecessor or successor; cycles of two and of one end; a chain ends
// at its head; the chain of a CSV that replaces itself contains only it; the chain of two CSVs that replace each other
// contains both; a linear chain contains all its versions; the predecessor is found, not found, or not read.
func TestPredecessorsAndSuccessors(t *testing.T) {
	for name, c := range map[string]struct {
		edges []string
		want  map[string]string
	}{
		"a chain":                         {[]string{"a", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"itself":                          {[]string{"a>a"}, map[string]string{"a": ""}},
		"a version that does not exist":   {[]string{"b>a"}, map[string]string{"b": ""}},
		"two that replace one":            {[]string{"a", "b>a", "c>a"}, map[string]string{"a": "", "b": "a", "c": "a"}},
		"a cycle of two":                  {[]string{"a>b", "b>a"}, map[string]string{"a": "", "b": "a"}},
		"a cycle of three":                {[]string{"a>c", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"a chain that leads into a cycle": {[]string{"a>b", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"a chain beside a version that replaces itself": {[]string{"a>a", "b>a"}, map[string]string{"a": "", "b": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := link(c.edges...)
			got := map[string]string{}
			for v := range all {
				got[v] = predecessorIn(all, v)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestUpgradeChainsFormAForest checks that every walk ends, whatever spec.replaces contains. Each version has the
// predecessor that it names, and each cycle loses exactly one edge.
// OLM's case: the chain of a CSV that replaces itself contains only it.
func TestUpgradeChainsFormAForest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(1, 6).Draw(t, "n")]
		var edges []string
		named := map[string]string{}
		for _, name := range names {
			replaces := rapid.SampledFrom(append([]string{"", "gone"}, names...)).Draw(t, name)
			edges = append(edges, name+">"+replaces)
			if slices.Contains(names, replaces) && replaces != name {
				named[name] = replaces
			}
		}
		all := link(edges...)
		got := map[string]string{}
		for _, name := range names {
			if p := predecessorIn(all, name); p != "" {
				require.Equal(t, named[name], p)
				got[name] = p
			}
		}
		require.Equal(t, len(named)-circles(named), len(got), "each circle loses one edge: %v %v", named, got)
		require.Zero(t, circles(got))
	})
}

// circles returns the number of cycles of a function on names.
func circles(next map[string]string) (n int) {
	for start := range next {
		smallest := true
		at, steps := next[start], 0
		for ; at != "" && at != start && steps < 10; steps++ {
			smallest = smallest && start < at
			at = next[at]
		}
		if at == start && smallest {
			n++
		}
	}
	return n
}

// TestUpgradesKeepAVersionRunning creates the versions of upgrade chains in any order, all at once or one by one, and
// loses writes. After the first success, there is always a version that runs or is being replaced. No version is
// deleted before a later one is Succeeded. In the end, only the head exists.
// OLM's case: several versions in between.
func TestUpgradesKeepAVersionRunning(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		base := fromFiles("base.yaml", "v1.yaml")
		require.NoError(t, c.Create(base[:3]...))
		template := base[len(base)-1].(*v1alpha1.ClusterServiceVersion)
		n := rapid.IntRange(2, 5).Draw(t, "versions")
		together := rapid.Bool().Draw(t, "together")
		order := indices(n)
		if together {
			order = rapid.Permutation(order).Draw(t, "order")
		}
		w := watch{replacedBy: map[string]string{}, succeeded: map[string]bool{}}
		for i, v := range order {
			next := template.DeepCopy()
			next.Name, next.Spec.Version.Major = fmt.Sprintf("cool.v%d", v), uint64(v)
			if v > 0 {
				next.Spec.Replaces = fmt.Sprintf("cool.v%d", v-1)
				w.replacedBy[next.Spec.Replaces] = next.Name
			}
			require.NoError(t, c.Create(needs(next)[1:]...))
			require.NoError(t, c.Create(next))
			for range rapid.IntRange(0, 12).Draw(t, "rounds") {
				if together && i < n-1 {
					break
				}
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
					c.Faults().Inject(fake.Fault{Mode: fake.FailWithoutEffect, Nth: rapid.IntRange(1, 3).Draw(t, "nth")})
				}
				_, err := d.Round(ctx)
				require.NoError(t, err)
				w.check(t, c)
				require.NoError(t, c.RunFor(time.Second))
			}
		}
		c.Faults().Clear()
		for range 40 {
			_, err := d.Round(ctx)
			require.NoError(t, err)
			w.check(t, c)
			require.NoError(t, c.RunFor(20*time.Second))
		}
		require.NoError(t, d.RunUntilIdle(ctx, time.Hour))
		left := csvs(c)
		require.Len(t, left, 1, "%v", phases(left))
		require.Equal(t, []any{fmt.Sprintf("cool.v%d", n-1), succeeded}, []any{left[0].Name, left[0].Status.Phase})
	})
}

// watch records the earlier states of an upgrade chain.
type watch struct {
	replacedBy map[string]string
	succeeded  map[string]bool // ever
}

func (w *watch) check(t *rapid.T, c *fake.Cluster) {
	runs := false
	var leaving []string
	for _, v := range csvs(c) {
		w.succeeded[v.Name] = w.succeeded[v.Name] || v.Status.Phase == succeeded
		runs = runs || v.DeletionTimestamp == nil && (v.Status.Phase == succeeded || v.Status.Phase == replacing)
		if v.DeletionTimestamp != nil || v.Status.Phase == deleting {
			leaving = append(leaving, v.Name)
		}
	}
	require.True(t, runs || !slices.Contains(slices.Collect(maps.Values(w.succeeded)), true), "no version runs: %v", phases(csvs(c)))
	for _, name := range leaving {
		followed := false
		for s := w.replacedBy[name]; s != ""; s = w.replacedBy[s] {
			followed = followed || w.succeeded[s]
		}
		require.True(t, followed, "%s goes before a later version ran", name)
	}
}

// TestFailedInstallationIsRetriedWithBackoff checks that a transient error is retried with backoff, and a write that
// the API server calls invalid is not. The CSV stays Failed all the time.
func TestFailedInstallationIsRetriedWithBackoff(t *testing.T) {
	for name, c := range map[string]struct {
		err         func(target olmcore.Ref) error
		least, most int
	}{
		"invalid": {func(target olmcore.Ref) error {
			return apierrors.NewInvalid(target.GVK().GroupKind(), target.Name, nil)
		}, 1, 1},
		"denied by a webhook": {func(target olmcore.Ref) error {
			deployments := schema.GroupResource{Resource: "deployments"}
			return apierrors.NewForbidden(deployments, target.Name, errors.New(`admission webhook "a" denied the request`))
		}, 12, 28},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			require.NoError(t, cluster.Create(fromFiles("base.yaml", "v1.yaml")...))
			tries := 0
			cluster.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
				if target.Kind != "Deployment" {
					return nil
				}
				tries++
				return c.err(target)
			}
			require.NoError(t, driver.RunFor(context.Background(), time.Minute))
			before := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
			require.NoError(t, driver.RunFor(context.Background(), 3*time.Hour))
			require.Equal(t, before, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1"))
			require.Equal(t, reason("InstallComponentFailed"), before.Status.Reason)
			require.GreaterOrEqual(t, tries, c.least)
			require.LessOrEqual(t, tries, c.most)
		})
	}
}

// OLM's case: webhooks: repeated names, all groups, OLM's group and configurations are refused.
func TestForbiddenWebhookRules(t *testing.T) {
	const olm, configurations = "webhook rules cannot include the OLM group", "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
	const beyond = `webhook description "w.example.com": rules[1]: the rule names the cluster-scoped resources ` +
		"validatingadmissionpolicies.admissionregistration.k8s.io, but OperatorGroup group does not select all namespaces; " +
		"install the operator in a namespace whose OperatorGroup does, or let a cluster administrator allow all rules of the webhooks, " +
		`"cools of API groups example.com"; "validatingadmissionpolicies of API groups apps,admissionregistration.k8s.io", with: ` +
		"kubectl annotate operatorgroup group -n ns olmcore/allowed-webhooks=1BHatg5bnF5TdhCKYzmCKFT3dWFSQQ3AGxVzec --overwrite"
	rows := map[string]row{}
	for name, c := range map[string]struct{ group, resource, says string }{
		"all groups":                   {"*", "pods", "webhook rules cannot include all groups"},
		"the OLM group":                {"operators.coreos.com", "subscriptions", olm},
		"its configurations, by kind":  {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", configurations},
		"the mutating ones, by kind":   {"admissionregistration.k8s.io", "MutatingWebhookConfiguration", configurations},
		"all of their group":           {"admissionregistration.k8s.io", "*", configurations},
		"its configurations, by name":  {"admissionregistration.k8s.io", "validatingwebhookconfigurations", configurations},
		"the mutating ones, by name":   {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", configurations},
		"a part of its configurations": {"admissionregistration.k8s.io", "mutatingwebhookconfigurations/status", configurations},
		"policies of that group":       {"admissionregistration.k8s.io", "validatingadmissionpolicies", beyond},
		"another group":                {"example.com", "*", ""},
	} {
		r := webhookRow(func(w *v1alpha1.WebhookDescription) {
			w.Rules = append(w.Rules, w.Rules[0])
			w.Rules[1].APIGroups, w.Rules[1].Resources = []string{"apps", c.group}, []string{c.resource}
		}, c.says)
		if c.says == "" {
			r.want = toReporting(installReady, "AllRequirementsMet", allMet, nil)
		}
		rows[name] = r
	}
	run(t, rows)
}

func TestUpgradeMayTakeRequirementsOfOldVersion(t *testing.T) {
	was := func(in *csv.Input) {
		s := &in.ClusterServiceVersion.Status
		s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded, Reason: "InstallSucceeded"}}, s.Conditions...)
	}
	taken := func(r []v1alpha1.RequirementStatus) {
		r[1].Status, r[1].Message, r[1].Dependents = "PresentNotSatisfied", "Service account is owned by another ClusterServiceVersion", nil
	}
	const unmetNow = "requirements no longer met"
	account := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) {
			was(in)
			successorOf(in, pending)
			in.ServiceAccounts.Items[0].OwnerReferences = ownerCSV("cool.v2")
			change(in)
		}
	}
	givesWay := toReporting(replacing, "BeingReplaced", "being replaced by csv: cool.v2", taken)
	run(t, map[string]row{
		"the successor took the account, Failed":  {is(failed, "RequirementsNotMet", unmetNow), account(func(*csv.Input) {}), givesWay},
		"the successor took the account, Pending": {is(pending, "RequirementsNotMet", unmetNow), account(func(*csv.Input) {}), givesWay},
		"an unrelated CSV took the account": {is(failed, "RequirementsNotMet", unmetNow), account(func(in *csv.Input) { in.ServiceAccounts.Items[0].OwnerReferences = ownerCSV("other") }),
			toReporting(pending, "RequirementsNotMet", "requirements not met", taken)},
		"it never ran": {is(failed, "RequirementsNotMet", unmetNow), account(func(in *csv.Input) {
			in.ClusterServiceVersion.Status.Conditions = in.ClusterServiceVersion.Status.Conditions[1:]
		}), toReporting(pending, "RequirementsNotMet", "requirements not met", taken)},
		"it failed for another reason": {is(failed, "InstallCheckFailed", "install timeout"), account(func(*csv.Input) {}),
			toReporting(pending, "RequirementsNotMet", "requirements not met", taken)},
		"more is missing": {is(failed, "RequirementsNotMet", unmetNow), account(func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }), toReporting(pending, "RequirementsNotMet", "requirements not met", func(r []v1alpha1.RequirementStatus) {
			taken(r)
			r[0].Status, r[0].Message, r[0].UUID = "NotPresent", "CRD is not present", ""
		})},
		"a required CRD lost its version": {is(failed, "RequirementsNotMet", unmetNow), func(in *csv.Input) {
			d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			d.Owned, d.Required = nil, d.Owned
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
			status := in.ClusterServiceVersion.Status
			*in = labelled(t, *in)
			in.ClusterServiceVersion.Status = status
			was(in)
			successorOf(in, pending)
		}, toReporting(pending, "RequirementsNotMet", "requirements not met", func(r []v1alpha1.RequirementStatus) {
			r[0].Status, r[0].Message, r[0].UUID = "NotPresent", "CRD version not served", ""
		})},
	})
}

// TestExcludedAnnotationCausesNoRollout checks that a change of an excluded annotation updates no Deployment.
func TestExcludedAnnotationCausesNoRollout(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", wellDone)
	in.Config.ExcludedAnnotations = []string{"olm.skipRange"}
	in.ClusterServiceVersion.Annotations["olm.skipRange"] = "<1.0.0"
	deploy(t, &in)
	require.NotContains(t, in.Deployments.Items[0].Spec.Template.Annotations, "olm.skipRange")
	check(t, in, olmcore.Result{})
	in.ClusterServiceVersion.Annotations["olm.skipRange"] = "<2.0.0"
	check(t, in, olmcore.Result{})
	hold(in.ClusterServiceVersion, installReady, "AllRequirementsMet", allMet, time.Minute)
	check(t, in, moves(in, installing, "InstallSucceeded", "waiting for install components to report healthy"))
}

// TestRequiredAPIServiceIsNeverChanged checks the time from the installation to the end of the cleanup.
func TestRequiredAPIServiceIsNeverChanged(t *testing.T) {
	ctx := context.Background()
	cluster, driver := newWorld(csv.Config{})
	objects := fromFiles("base.yaml", "v1.yaml")
	v := objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion)
	v.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{{Name: "things", Group: "api.example.com", Version: "v1", Kind: "Thing"}}
	require.NoError(t, cluster.Create(append(objects, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.api.example.com"},
		Spec:       apiregistrationv1.APIServiceSpec{Group: "api.example.com", Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 15},
	})...))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, succeeded, live.Status.Phase, live.Status.Message)
	require.NoError(t, cluster.Delete(refOf(live)))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.NotNil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v1.api.example.com"))
	for _, e := range driver.Events {
		if e.Action != nil {
			_, target, _ := e.Action.Describe()
			require.NotEqual(t, "APIService", target.Kind)
		}
	}
}

// TestOperatorFailsIfStaticGroupLosesAPI checks that an API is not removed from the list of a static group. The
// operator fails instead.
// OLM's cases: APIs to remove from a static group: Failed; aggregation, install modes, intersection and static groups.
func TestOperatorFailsIfStaticGroupLosesAPI(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", wellDone)
	in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true
	in.OtherGroups, in.OtherProviders = olmcore.Found(staticGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, 1000*time.Hour))
	want := moves(in, failed, "CannotModifyStaticOperatorGroupProvidedAPIs", "static provided api operatorgroup cannot be modified by these apis")
	want.Diagnostics = []olmcore.Diagnostic{{
		Severity: olmcore.Error, Reason: csv.ReasonAPIConflict, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
		Message: "the operator is not installed: OperatorGroup other/group provides Cool.v1.example.com in a namespace that OperatorGroup " +
			"group targets too; remove one of the two operators, or give the groups separate targets",
	}}
	check(t, in, want)
}

// TestUpgradeChainIsInstalledInAnyOrderOfCreation creates three versions in each of the six orders. Every observed
// state is one that an upgrade chain may have. It includes OLM's cases of several versions that are created at once.
func TestUpgradeChainIsInstalledInAnyOrderOfCreation(t *testing.T) {
	begun := []string{"InstallReady", "Installing", "Succeeded", "Replacing", "Deleting", "gone"}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			objects := fromFiles("base.yaml", "v1.yaml")
			require.NoError(t, cluster.Create(objects[:3]...))
			template := objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion)
			for _, i := range order {
				v := template.DeepCopy()
				v.Name, v.Spec.Version.Major = string(rune('a'+i)), uint64(i+1)
				if i > 0 {
					v.Spec.Replaces = string(rune('a' + i - 1))
				}
				require.NoError(t, cluster.Create(needs(v)[1:]...))
				require.NoError(t, cluster.Create(v))
			}
			seen := map[string]bool{}
			for range 60 {
				require.NoError(t, cluster.Settle())
				_, err := driver.Round(context.Background())
				require.NoError(t, err)
				state := [3]string{"gone", "gone", "gone"}
				for _, v := range csvs(cluster) {
					state[v.Name[0]-'a'] = string(v.Status.Phase)
				}
				for i := range 2 {
					makesWay := slices.Contains([]string{"Replacing", "Deleting", "gone"}, state[i])
					require.True(t, makesWay || !slices.Contains(begun, state[i+1]), "%v", state)
				}
				require.True(t, state[0] == "gone" || state[2] != "Succeeded" || slices.Contains([]string{"Replacing", "Deleting"}, state[0]), "%v", state)
				seen[fmt.Sprint(state)] = true
				require.NoError(t, cluster.RunFor(time.Second))
			}
			require.NoError(t, driver.RunUntilIdle(context.Background(), time.Hour))
			require.Equal(t, []string{"c Succeeded", "deployment cool of c, example.com/cool:1"}, summary(cluster))
			require.Greater(t, len(seen), 4, "%v", seen)
		})
	}
}

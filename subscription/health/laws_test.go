// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

// drawInput draws a namespace of one to three Subscriptions, with a plan and versions whose statuses are random.
func drawInput(t *rapid.T) health.Input {
	v := gen.Vocabulary{Now: now, Namespace: "ops", Names: []string{"p", "etcd.v1", "etcd.v0"}, Words: map[string][]string{
		"": {"x"}, "status": {"True", "False"}, "message": {"one", "two", ""}, "state": {"AtLatestKnown", "UpgradePending", ""},
		"currentcsv": {"etcd.v1", ""}, "installedcsv": {"etcd.v0", "etcd.v1", ""}, "replaces": {"etcd.v0", ""},
		"type":   {"ResolutionFailed", "BundleUnpacking", "InstallPlanPending", "InstallPlanFailed", "InstallPlanMissing", "CatalogSourcesUnhealthy", "Installed", "Ready", "PodScheduled"},
		"reason": {"RequiresApproval", "Installing", "InstallWaiting", "RequirementsNotMet", "OperatorConditionNotUpgradeable", "CrashLoopBackOff", "Unschedulable", "InstallCheckFailed"},
		"phase":  {"Succeeded", "Installing", "Pending", "Failed", "Complete", "RequiresApproval", "Running", ""},
	}}
	in := health.Input{Input: inputOf(), Deployments: olmcore.Found(newDeployment("etcd")), Pods: olmcore.Found[*corev1.Pod]()}
	for i := range rapid.IntRange(1, 3).Draw(t, "subscriptions") {
		s := newSub(fmt.Sprint("s", i))
		s.Status = gen.Value[v1alpha1.SubscriptionStatus](v).Draw(t, "subscription")
		if rapid.Bool().Draw(t, "follows") {
			status := newSub("x", follows("p", "etcd.v1")).Status
			s.Status.InstallPlanRef, s.Status.Install = status.InstallPlanRef, status.Install
		}
		in.Subscriptions.Items = append(in.Subscriptions.Items, s)
	}
	if rapid.Bool().Draw(t, "has a plan") {
		in.InstallPlans.Items = append(in.InstallPlans.Items, newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.Status = gen.Value[v1alpha1.InstallPlanStatus](v).Draw(t, "plan") }))
	}
	for _, name := range []string{"etcd.v0", "etcd.v1"} {
		if rapid.Bool().Draw(t, "has "+name) {
			c := versionOf("", "", "etcd")
			c.Name, c.UID = name, olmcore.RefOf(newCSV(name)).UID
			c.Status = gen.Value[v1alpha1.ClusterServiceVersionStatus](v).Draw(t, name)
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, c)
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "pods") {
		in.Pods.Items = append(in.Pods.Items, newPod(fmt.Sprint("p", i), i, func(p *corev1.Pod) { p.Status = gen.Value[corev1.PodStatus](v).Draw(t, "pod") }))
	}
	in.Deployments.Items[0].Status = gen.Value[appsv1.DeploymentStatus](v).Draw(t, "deployment")
	return in
}

// readAgain returns the Input of another read: equal objects, in another order and another time zone.
func readAgain(t *rapid.T, in health.Input) health.Input {
	again := in
	again.Subscriptions.Items = copies(t, in.Subscriptions.Items)
	again.InstallPlans.Items = copies(t, in.InstallPlans.Items)
	again.ClusterServiceVersions.Items = copies(t, in.ClusterServiceVersions.Items)
	again.Deployments.Items = copies(t, in.Deployments.Items)
	again.Pods.Items = copies(t, in.Pods.Items)
	return again
}

func copies[O olmcore.Object](t *rapid.T, list []O) []O {
	all := make([]O, len(list))
	for i, o := range list {
		all[len(list)-1-i] = o.DeepCopyObject().(O)
	}
	return all
}

// TestArbitraryContentIsAnsweredOrRejected checks that objects that no API server would store are answered or
// rejected with an InputError.
func TestArbitraryContentIsAnsweredOrRejected(t *testing.T) {
	v := gen.Vocabulary{Now: now, Namespace: "ops", Names: []string{"etcd", "p"}, Hostile: true}
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		for range rapid.IntRange(0, 2).Draw(t, "deployments") {
			in.Deployments.Items = append(in.Deployments.Items, new(gen.Value[appsv1.Deployment](v).Draw(t, "deployment")))
		}
		for range rapid.IntRange(0, 2).Draw(t, "pods") {
			in.Pods.Items = append(in.Pods.Items, new(gen.Value[corev1.Pod](v).Draw(t, "pod")))
		}
		if rapid.Bool().Draw(t, "a hostile status") && len(in.ClusterServiceVersions.Items) > 0 {
			in.ClusterServiceVersions.Items[0].Spec = gen.Value[v1alpha1.ClusterServiceVersionSpec](v).Draw(t, "spec")
		}
		answers, err := health.Assess(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
			return
		}
		require.Len(t, answers, len(in.Subscriptions.Items))
	})
}

// TestSinceIsStable checks that Since does not change while only messages change, and over repeated calls and
// reads.
func TestSinceIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		first, err := health.Assess(in)
		require.NoError(t, err)
		again := readAgain(t, in)
		second, err := health.Assess(again)
		require.NoError(t, err)
		require.Equal(t, first, second)
		retell(reflect.ValueOf(&again).Elem())
		retold, err := health.Assess(again)
		require.NoError(t, err)
		for name, h := range first {
			require.Equal(t, h.Since, retold[name].Since, name)
			require.Equal(t, h.Phase, retold[name].Phase, name)
			require.Equal(t, h.Object, retold[name].Object, name)
			require.Equal(t, h.Reason, retold[name].Reason, name)
			require.Equal(t, time.UTC, h.Since.Location())
		}
	})
}

// retell changes every message in an Input.
func retell(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			retell(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			retell(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Name == "Message" && f.Kind() == reflect.String {
				f.SetString(f.String() + ", and more of it")
			} else if v.Type().Field(i).IsExported() {
				retell(f)
			}
		}
	}
}

// TestChangedMessageKeepsSince checks that Since is kept when another message is written, which changes
// status.lastUpdated.
func TestChangedMessageKeepsSince(t *testing.T) {
	told := func(at int, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return newSub("a", append(change, func(s *v1alpha1.Subscription) {
			s.Status.LastUpdated = second(at)
			for i := range s.Status.Conditions {
				s.Status.Conditions[i].Message = fmt.Sprint("as of ", at)
			}
		})...)
	}
	updated := func(at int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Status.Conditions[0].LastUpdateTime, p.Status.Conditions[0].Message = secondp(at), fmt.Sprint("as of ", at)
		}
	}
	for name, in := range map[string]func(at int) subscription.Input{
		"unsolvable": func(at int) subscription.Input {
			return inputOf(told(at, withCondition("ResolutionFailed", "ConstraintsNotSatisfiable", "", 7)))
		},
		"two OperatorGroups": func(at int) subscription.Input {
			in := inputOf(told(at, withCondition("ResolutionFailed", "ErrorPreventedResolution", "", 7)))
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, &operatorsv1.OperatorGroup{ObjectMeta: meta("second")})
			return in
		},
		"unpacking": func(at int) subscription.Input {
			return inputOf(told(at, withCondition("BundleUnpacking", "UnpackingInProgress", "", 7)))
		},
		"resolving": func(at int) subscription.Input {
			return inputOf(told(at, func(s *v1alpha1.Subscription) {
				withCondition("CatalogSourcesUnhealthy", "AllCatalogSourcesHealthy", "", 7)(s)
				s.Status.Conditions[0].Status = "False"
			}))
		},
		"missing": func(at int) subscription.Input {
			return inputOf(told(at, follows("p", "etcd.v1"), withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 7)))
		},
		"plan out of sight": func(at int) subscription.Input {
			return inputOf(told(at, follows("p", "etcd.v1"), pending("Installing", 7)))
		},
		"plan failed": func(at int) subscription.Input {
			return inputOf(told(at, follows("p", "etcd.v1")), newPlan("p", "Failed", failed(7), updated(at)))
		},
	} {
		want := only(t, health.Input{Input: in(20)})
		require.Equal(t, second(7).Time, want.Since, name)
		require.Equal(t, want.Since, only(t, health.Input{Input: in(55)}).Since, name)
	}
}

// TestSummariesMergeInAnyOrder checks that a Summary equals the merge of the Summaries of its parts, in any order
// and grouping.
func TestSummariesMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts, all := []health.Summary{{}}, map[string]health.Health{}
		for i := range rapid.IntRange(0, 4).Draw(t, "namespaces") {
			answers, err := health.Assess(drawInput(t))
			require.NoError(t, err)
			for name, h := range answers {
				h.Subscription.Namespace = fmt.Sprint("ns", i)
				answers[name], all[fmt.Sprint(i, name)] = h, h
			}
			parts = append(parts, health.Summarize(answers))
		}
		want := health.Summarize(all)
		parts = rapid.Permutation(parts).Draw(t, "order")
		before := fmt.Sprint(parts)
		cut := rapid.IntRange(0, len(parts)).Draw(t, "cut")
		fold := func(list []health.Summary) (s health.Summary) {
			for _, p := range list {
				s = s.Merge(p)
			}
			return s
		}
		require.Equal(t, want, fold(parts))
		require.Equal(t, want, fold(parts[:cut]).Merge(fold(parts[cut:])))
		_ = parts[0].Merge(parts[len(parts)-1])
		require.Equal(t, before, fmt.Sprint(parts), "a part was changed")
		require.Equal(t, want.Subscriptions, len(all))
		require.True(t, slices.IsSortedFunc(want.Act, func(a, b health.Health) int { return b.Phase.Badness() - a.Phase.Badness() }))
	})
}

// TestWorstSubscriptionComesFirst checks that Subscriptions are sorted by severity, then by duration. Those without
// a time are last.
func TestWorstSubscriptionComesFirst(t *testing.T) {
	answer := func(name string, phase health.Phase, since time.Time) health.Health {
		return health.Health{Subscription: olmcore.Ref{Name: name}, Phase: phase, Since: since, Advice: "x"}
	}
	want := []health.Health{
		answer("e", health.Failed, time.Time{}), answer("d", health.Stuck, second(3).Time), answer("b", health.Installing, second(1).Time),
		answer("c", health.Installing, second(2).Time), answer("f", health.Installing, second(2).Time), answer("a", health.Installing, time.Time{}),
	}
	all := map[string]health.Health{"quiet": {Phase: health.Installing}}
	for _, h := range want {
		all[h.Subscription.Name] = h
	}
	require.Equal(t, health.Summary{Subscriptions: 7, Worst: health.Failed, Act: want,
		Phases: map[health.Phase]int{health.Failed: 1, health.Stuck: 1, health.Installing: 5}}, health.Summarize(all))
	require.Equal(t, health.Summary{}, health.Summary{}.Merge(health.Summary{}))
}

// TestPhasesAreOrderedBySeverity checks that each phase has its own rank, and that only Installed has rank 0.
func TestPhasesAreOrderedBySeverity(t *testing.T) {
	rows := health.Phases()
	for i, r := range rows {
		require.Equal(t, len(rows)-1-i, r.Phase.Badness())
		require.NotEmpty(t, r.Meaning)
	}
	require.Equal(t, health.Installed, rows[len(rows)-1].Phase)
	require.Greater(t, health.Phase("Melting").Badness(), rows[0].Phase.Badness())
}

// TestJSONFormatIsStable compares the JSON of a Health and of a Summary with testdata. OLMCORE_UPDATE=1 rewrites
// it.
func TestJSONFormatIsStable(t *testing.T) {
	blocked := only(t, inputWith(versionOf("Installing", v1alpha1.CSVReasonWaiting, "etcd"), newDeployment("etcd"), newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))))
	succeeded := versionOf("Succeeded", v1alpha1.CSVReasonInstallSuccessful)
	succeeded.Status.LastTransitionTime.Time = succeeded.Status.LastTransitionTime.In(time.FixedZone("elsewhere", 3600))
	succeeded.Status.Message = "install strategy completed with no errors"
	healthy := only(t, inputWith(succeeded))
	for name, value := range map[string]any{
		"health.json": blocked, "healthy.json": healthy, "zero.json": health.Health{},
		"summary.json": health.Summarize(map[string]health.Health{"a": blocked, "b": healthy}),
	} {
		data, err := json.MarshalIndent(value, "", "  ")
		require.NoError(t, err)
		data = append(data, '\n')
		if os.Getenv("OLMCORE_UPDATE") != "" {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile("testdata/"+name, data, 0o644))
		}
		want, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(data))
		back := reflect.New(reflect.TypeOf(value))
		require.NoError(t, json.Unmarshal(data, back.Interface()))
		require.Equal(t, value, back.Elem().Interface())
	}
}

// TestEverySituationHasAdvice checks that every situation, and every failure of a Pod or Deployment, has advice.
func TestEverySituationHasAdvice(t *testing.T) {
	advices := health.Advices()
	for _, reason := range health.Troubles() {
		require.NotEmpty(t, advices[reason], reason)
	}
	for _, s := range slices.Sorted(maps.Keys(advices)) {
		require.NotEmpty(t, advices[s], s)
	}
	require.Len(t, advices, len(health.Situations())+len(health.Troubles()), "docs/health.md has all of them")
	for _, s := range health.Situations() {
		require.NotEmpty(t, advices[s], s)
	}
}

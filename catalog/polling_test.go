// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// pollCases contains the cases of reconcileCases about polls.
var pollCases = map[string]func(*catalog.Input){
	"a poll interval that is none": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("1d") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-5 * time.Minute)))
	},
	"a poll that is due starts a candidate": pollAgo(45*time.Minute, nil),
	"a poll that is not due is waited for":  pollAgo(44*time.Minute, nil),
	"a poll of an image that the registry says is unchanged needs no Pod": pollAgo(45*time.Minute, func(in *catalog.Input) {
		in.ResolvedDigest = in.Pods.Items[0].Status.ContainerStatuses[0].ImageID[strings.Index(in.Pods.Items[0].Status.ContainerStatuses[0].ImageID, "@")+1:]
	}),
	"the start of a poll is recorded when its Pod is seen": pollAgo(46*time.Minute, probe(func(p *corev1.Pod) { unready(p) })),
	"a candidate with the same content goes":               pollAgo(time.Minute, probe(nil)),
	"a candidate with new content takes over": pollAgo(
		time.Minute,
		probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new" }),
	),
	"a candidate whose content is unknown is waited for": pollAgo(
		time.Minute,
		probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "" }),
	),
	"a candidate that crashes is given up": pollAgo(time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	})),
	"a candidate that never gets ready is given up": pollAgo(10*time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(start.Add(50 * time.Minute))
	})),
	"a candidate rescues a catalog that does not serve": pollAgo(time.Minute, func(in *catalog.Input) {
		probe(nil)(in)
		waiting(in, "ImagePullBackOff")
		in.Pods.Items[0].Status.ContainerStatuses[0].ImageID = ""
	}),
	"a broken image is polled for a better one":        pollAgo(time.Hour, func(in *catalog.Input) { waiting(in, "ImagePullBackOff") }),
	"a candidate of a poll that was switched off goes": probe(nil),
	"a candidate that another object owns is kept":     pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.OwnerReferences = nil })),
	"a candidate of another spec is never promoted": pollAgo(
		time.Minute,
		probe(func(p *corev1.Pod) { p.Labels["olm.pod-spec-hash"] = "old" }),
	),
	"a promotion that was interrupted is finished": pollAgo(time.Minute, func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			p.Annotations["olmcore/purpose"], p.Status.ContainerStatuses[0].ImageID = "poll", "repo@sha256:new"
		})
	}),
	"a poll in the future counts as now": pollAgo(-time.Hour, nil),
	"a poll of a clock that was ahead counts once its time has come": pollAgo(time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(start.Add(65 * time.Minute))
	})),
	"newer content that a clock ahead polled serves, and counts as a poll once its time has come": pollAgo(
		time.Minute,
		func(in *catalog.Input) {
			in.Pods.Items[0].Annotations["olmcore/purpose"], in.Pods.Items[0].CreationTimestamp = "poll", metav1.NewTime(start.Add(65*time.Minute))
		},
	),
	"an image with a digest is not polled": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.UpdateStrategy = "repo@sha256:1", polling("1h") })
		in.Pods.Items = nil
	},
	"what became of a poll outlives a spec that is wrong for a while": pollAgo(time.Minute, func(in *catalog.Input) {
		in.CatalogSource.Spec.SourceType = ""
		in.CatalogSource.Status.Conditions = append(in.CatalogSource.Status.Conditions, metav1.Condition{
			Type: "UpdatePolled", Status: "True", Reason: catalog.ReasonUpToDate, Message: "the last poll found the content that is served", ObservedGeneration: 2})
	}),
	"an address is not polled": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address, s.UpdateStrategy = "", "foo:1", polling("1h") })
		in.Connection.Address = "foo:1"
		in.Pods.Items = nil
	},
}

// TestPollsAreTimedAsByOLM checks that a poll that is not due is requeued after the time that is left, at most 15
// minutes.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_polling_test.go.
func TestPollsAreTimedAsByOLM(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		interval      string
		created, last time.Duration // ago; last negative: never
		want          time.Duration
	}{
		"ten minutes, the first":           {"10m", 0, -1, 10 * time.Minute},
		"fifteen minutes, the first":       {"15m", 0, -1, 15 * time.Minute},
		"thirty minutes, almost over":      {"30m", time.Hour, 29*time.Minute + 59*time.Second, time.Second},
		"forty minutes, almost over":       {"40m", 35 * time.Minute, -1, 5 * time.Minute},
		"forty minutes, in ten":            {"40m", time.Hour, 30 * time.Minute, 10 * time.Minute},
		"an hour, far away":                {"1h", 15 * time.Minute, -1, 15 * time.Minute},
		"ten hours, far away":              {"10h", 20 * time.Hour, 15 * time.Minute, 15 * time.Minute},
		"ten minutes, half over (differs)": {"10m", time.Hour, 5 * time.Minute, 5 * time.Minute},
		"overdue (differs)":                {"10m", time.Hour, 20 * time.Minute, 0},
	} {
		out := reconcile(t, base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling(test.interval) })
			in.CatalogSource.CreationTimestamp = metav1.NewTime(in.Now.Add(-test.created))
			if test.last >= 0 {
				in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-test.last)))
			}
		})
		require.Equal(t, test.want, out.RequeueAfter, name)
		require.Equal(t, test.want == 0, len(done(out)) == 1, name)
	}
	jittered := reconcile(t, base, func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("10m") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		in.Jitter = 0.5
	})
	require.Equal(t, 10*time.Minute+30*time.Second, jittered.RequeueAfter)
}

// TestPollStartInTheFutureIsWrittenOnce checks that the start of a poll is written once if its Pod was created in
// the future, for example after a clock was set back.
func TestPollStartInTheFutureIsWrittenOnce(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	in := invariant.Clone(base)
	pollAgo(45*time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(in.Now.Add(time.Hour))
	}))(&in)
	for later, want := range map[time.Duration]bool{0: true, time.Minute: false, 44 * time.Minute: false, 45 * time.Minute: true} {
		at := invariant.Clone(in)
		at.Now = at.Now.Add(later)
		if later > 0 {
			at.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		}
		out := answer(t, at)
		status, written := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.True(t, written)
		require.Equal(t, want, !status.Status.LatestImageRegistryPoll.Equal(at.CatalogSource.Status.LatestImageRegistryPoll), "%s", later)
		require.Equal(t, !want, status.Status.LatestImageRegistryPoll.Time.Equal(in.Now) && later > 0, "%s", later)
		require.NotContains(t, done(out), "create a Pod PollDue", "one Pod polls already")
	}
}

// TestPollWaitsForStablePods checks that no poll starts while many Nodes fail, a Pod is unschedulable, or more
// Pods run than configured, and that Pods of another spec do not end a poll.
func TestPollWaitsForStablePods(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change     func(*catalog.Input)
		want, told string
	}{
		"nothing": {func(*catalog.Input) {}, "+candidate:poll", "NeverPolled"},
		"many nodes fail": {func(in *catalog.Input) {
			in.Pods.Items[0].Spec.NodeName = "b"
			setNode(in, corev1.ConditionTrue, time.Minute)
			for i := range 3 {
				n := in.Nodes.Items[0].DeepCopy()
				n.Name, readyOf(n).Status = fmt.Sprint("n", i), corev1.ConditionUnknown
				in.Nodes.Items = append(in.Nodes.Items, n)
			}
		}, "", "NeverPolled"},
		"a Pod finds no place":           {func(in *catalog.Input) { describeAs(in, in.Pods.Items[0], "unschedulable") }, "", "NeverPolled"},
		"a Pod starts":                   {func(in *catalog.Input) { unready(in.Pods.Items[0]) }, "", "NeverPolled"},
		"a candidate crashed":            {probeOf("finished"), "-cool-zz", "CandidateFailed"},
		"a candidate crashed in its end": {probeOf("terminating finished"), "-cool-zz", "NeverPolled"},
		"a candidate is about to end":    {probeOf("terminating unready"), "", "NeverPolled"},
		"a candidate is of another spec": {probeOf("old unready"), "-cool-zz", "NeverPolled"},
		"a candidate is lost":            {probeOf("lost unready"), "-cool-zz", "NeverPolled"},
		"two found different content":    {twoProbes(time.Hour, time.Minute), "-cool-zz", "NeverPolled"},
		"two of this second":             {twoProbes(0, 0), "", "NeverPolled"},
		"two of one second, 60 s ago":    {twoProbes(60*time.Second, 60*time.Second), "", "NeverPolled"},
		"two of one second, 61 s ago":    {twoProbes(61*time.Second, 61*time.Second), "-cool-zz", "NeverPolled"},
		"its content is not known":       {probeOf("unknown"), "", "NeverPolled"},
	} {
		in := invariant.Clone(base)
		pollAgo(time.Hour, test.change)(&in)
		out := answer(t, in)
		require.Equal(t, test.want, moves(out), name)
		require.NoError(t, invariant.Laws(result, in), name)
		require.Equal(t, test.told, meta.FindStatusCondition(catalog.Assess(in).Conditions, catalog.ConditionUpdatePolled).Reason, name)
	}
}

// twoProbes adds two Pods that found different content and were created some time ago.
func twoProbes(first, second time.Duration) func(*catalog.Input) {
	return func(in *catalog.Input) {
		probeOf("new")(in)
		probeOf("newer")(in)
		one, other := in.Pods.Items[1], in.Pods.Items[2]
		other.Name, other.UID = "cool-zzz", "zzz"
		one.CreationTimestamp, other.CreationTimestamp = olmcore.Timestamp(in.Now.Add(-first)), olmcore.Timestamp(in.Now.Add(-second))
	}
}

// probeOf adds a Pod that polls, described by words.
func probeOf(words string) func(*catalog.Input) {
	return func(in *catalog.Input) {
		probe(func(p *corev1.Pod) {
			for _, word := range strings.Fields(words) {
				describeAs(in, p, word)
			}
		})(in)
	}
}

// TestEveryPollIntervalIsLimited checks that polls are between 30 seconds and 10 years apart, whatever the spec
// contains.
func TestEveryPollIntervalIsLimited(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	rapid.Check(t, func(t *rapid.T) {
		in := invariant.Clone(base)
		poll := &v1alpha1.RegistryPoll{RawInterval: rapid.OneOf(
			rapid.String(), rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{1,9})?(ns|us|ms|s|m|h|d)?`),
		).Draw(t, "text")}
		if rapid.Bool().Draw(t, "decoded") {
			poll.Interval = &metav1.Duration{Duration: time.Duration(rapid.SampledFrom([]int64{
				0, -1, 1, math.MaxInt64, math.MinInt64, int64(time.Minute), int64(45 * time.Second),
			}).Draw(t, "interval"))}
		}
		edit(&in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = &v1alpha1.UpdateStrategy{RegistryPoll: poll} })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		in.Jitter = rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		a := catalog.Assess(in)
		wait := a.NextPoll.Sub(in.Now)
		require.GreaterOrEqual(t, wait, 30*time.Second)
		require.LessOrEqual(t, wait, 11*365*24*time.Hour)
		require.NoError(t, invariant.Laws(result, in))
	})
}

// TestPollIntervalsAsTheAPIDecodesThem checks the interval and the message for every form of spec.updateStrategy
// that the decoder of the API returns.
func TestPollIntervalsAsTheAPIDecodesThem(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	const parsing = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: "
	for strategy, want := range map[string]struct {
		every   time.Duration
		message string
	}{
		`null`:                                            {},
		`{}`:                                              {},
		`{"registryPoll":null}`:                           {},
		`{"registryPoll":{}}`:                             {15 * time.Minute, parsing + `invalid duration ""`},
		`{"registryPoll":{"interval":""}}`:                {15 * time.Minute, parsing + `invalid duration ""`},
		`{"registryPoll":{"interval":"45m"}}`:             {45 * time.Minute, ""},
		`{"registryPoll":{"interval":"45s"}}`:             {45 * time.Second, ""},
		`{"registryPoll":{"interval":"1d"}}`:              {15 * time.Minute, parsing + `unknown unit "d" in duration "1d"`},
		`{"registryPoll":{"interval":"45mError.code"}}`:   {15 * time.Minute, parsing + `unknown unit "mError" in duration "45mError.code"`},
		`{"registryPoll":{"interval":"0s"}}`:              {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be positive"},
		`{"registryPoll":{"interval":"-5m"}}`:             {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be positive"},
		`{"registryPoll":{"interval":"1ns"}}`:             {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be at least 30s; using 30s"},
		`{"registryPoll":{"interval":"2562047h47m16s"}}`:  {maxInterval, "spec.updateStrategy.registryPoll.interval must be at most 10 years; using 10 years"},
		`{"registryPoll":{"interval":"99999999999999h"}}`: {15 * time.Minute, parsing + `invalid duration "99999999999999h"`},
	} {
		o, err := decode.Decode(
			[]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"namespace":"olm","name":"cool"},
			"spec":{"sourceType":"grpc","image":"quay.io/example/catalog:v1","updateStrategy":` + strategy + `}}`),
		)
		require.NoError(t, err, strategy)
		in := invariant.Clone(base)
		edit(&in, func(s *v1alpha1.CatalogSourceSpec) {
			s.UpdateStrategy = o.(*v1alpha1.CatalogSource).Spec.UpdateStrategy
		})
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		a := catalog.Assess(in)
		require.Equal(t, want.every == 0, a.NextPoll.IsZero(), strategy)
		if want.every > 0 {
			require.Equal(t, want.every, a.NextPoll.Sub(in.Now), strategy)
		}
		out := answer(t, in)
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, want.message, status.Status.Message, strategy)
		require.Equal(t, want.message != "", status.Status.Reason == v1alpha1.CatalogSourceIntervalInvalidError, strategy)
		require.Equal(
			t,
			want.message != "",
			meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason == catalog.ReasonPollIntervalInvalid,
			strategy,
		)
	}
	_, err := decode.Decode(
		[]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"namespace":"olm","name":"cool"},
		"spec":{"updateStrategy":{"registryPoll":{"interval":45}}}}`),
	)
	require.Error(t, err, "a number is no interval")
	require.True(t, strings.Contains(err.Error(), "number") || strings.Contains(err.Error(), "interval"), err.Error())
}

const maxInterval = 10 * 365 * 24 * time.Hour

// TestAnInvalidIntervalStaysReported checks that an invalid interval is also reported while a candidate starts.
func TestAnInvalidIntervalStaysReported(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for interval, message := range map[string]string{
		"45mError.code": `time: unknown unit "mError" in duration "45mError.code"`,
		"":              "empty polling interval; cannot requeue registry server sync without a provided polling interval",
	} {
		for _, change := range []func(*catalog.Input){func(*catalog.Input) {}, probe(unready)} {
			out := reconcile(t, base, func(in *catalog.Input) {
				edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling(interval) })
				in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-time.Minute)))
				change(in)
			})
			status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
			require.Equal(t, v1alpha1.CatalogSourceIntervalInvalidError, status.Status.Reason)
			require.Contains(t, status.Status.Message, message)
		}
	}
}

// TestAPolledCatalogAtRestOnlyPolls checks that a polled catalog only polls for a day.
func TestAPolledCatalogAtRestOnlyPolls(t *testing.T) {
	for interval, polls := range map[string]int{"45m": 8, "1s": 720, "nonsense": 24} {
		cs := cool()
		cs.Spec.UpdateStrategy = polling(interval)
		w := newWorld(t, catalog.Config{}, cs)
		w.run(t, time.Second)
		from := len(w.Events)
		w.run(t, 6*time.Hour)
		_, what := podWrites(w, from)
		created := 0
		for _, verb := range what {
			switch verb {
			case "create " + catalog.ReasonPollDue:
				created++
			case "delete " + catalog.ReasonUpToDate:
			default:
				require.Fail(t, verb)
			}
		}
		require.InDelta(t, polls, created, 1, interval)
	}
}

// TestPollPodsAreSpreadFromEachOther checks that the Pods of polls are spread only from each other, because they
// may replace the other Pods. If the spread is required, it includes all Pods.
func TestPollPodsAreSpreadFromEachOther(t *testing.T) {
	for spread, want := range map[catalog.Spread]string{catalog.SpreadPrefer: "catalogsource.operators.coreos.com/update", catalog.SpreadRequire: "olm.pod-spec-hash"} {
		base := converged(t, catalog.Config{Replicas: 2, Spread: spread}, cool())
		out := reconcile(t, base, pollAgo(time.Hour, nil))
		require.Equal(t, []string{"create a Pod PollDue"}, done(out))
		for _, constraint := range out.Actions[0].(olmcore.Create).Object.(*corev1.Pod).Spec.TopologySpreadConstraints {
			require.Contains(t, constraint.LabelSelector.MatchLabels, want)
			require.Len(t, constraint.LabelSelector.MatchLabels, 1)
		}
	}
}

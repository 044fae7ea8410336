// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mode is how far a CatalogSource can be carried out.
type mode int

const (
	modeImage     mode = iota // Pods of an image
	modeConfigMap             // Pods that serve a ConfigMap
	modeAddress               // a registry that somebody else runs
	modeDeleting              // it goes, or its namespace does
	modeInvalid               // bad spec
	modeBlocked               // something is missing or taken; see view.blocked
)

// runsPods reports whether the catalog is served by Pods of its own.
func (v *view) runsPods() bool { return v.mode == modeImage || v.mode == modeConfigMap }

// view is an Input, judged: what all later decisions look at. What leaves
// through an interface or into a result moves to the heap with all that points
// to it directly, so the view itself holds no text and no object: those stand
// behind one more pointer, and a view of a converged CatalogSource costs nothing.
type view struct {
	in *Input
	cs *v1alpha1.CatalogSource
	*desk

	mode mode
	// Positions in the input's slices, -1 for objects that do not exist.
	serviceAt, accountAt int
	otherAccountAt       int // the one of the other kind of Pods
	policyAt             [2]int
	accountShared        bool

	pods       []podFacts
	disruption disruption
	tally      tally
	// retry is the time until a decision that waits may be taken.
	retry time.Duration
}

// desk is what a view keeps besides.
type desk struct {
	set     settings
	hashes  hashes
	problem specProblem
	poll    polling
	link    link
	// blocked is the Reason of modeBlocked.
	blocked string
	// taken is the name of an object that belongs to somebody else.
	taken       string
	pullSecrets []corev1.LocalObjectReference
	// content is what servedContent found, once somebody asked.
	content      string
	contentKnown bool
	// replaced are the Pods that others were or will be made for, once somebody asked.
	replaced map[types.UID]bool
}

// tally counts own Pods.
type tally struct {
	// In the serving role: of the present spec, those of them that are ready, those
	// that are not about to be evicted; of another spec, and ready ones of those.
	current, currentReady, steady, outdated, outdatedReady int
	// Candidates of the present spec that may still become something, and ready
	// ones.
	candidates, candidatesReady int
	// In the serving role, and of no use any more.
	lost, terminating, terminated, stuck int
	// active are all that run or will, whatever their role.
	active int
	// unfinished are all that are not Terminated.
	unfinished int
}

// observe judges an input. room holds the Pods when there are few.
func observe(in *Input, d *desk, room []podFacts) view {
	v := view{in: in, cs: in.CatalogSource, desk: d}
	v.set = resolveSettings(&in.Config, v.cs)
	v.problem = checkSpec(v.cs)
	v.findObjects()
	v.mode, v.blocked = v.modeOf()
	v.pullSecrets = v.wantedPullSecrets()
	v.hashes = readHashes(in.PodHash, v.sealOf())
	v.pods = v.judgeAll(room)
	v.tally = v.count()
	v.observePolling()
	v.link = v.observeLink()
	for i := range v.pods {
		if n := v.pods[i].node; n != NodeHealthy && n != NodeNotObserved && n != "" {
			v.disruption = massDisruption(in.Nodes.Items)
			break
		}
	}
	return v
}

func (v *view) modeOf() (mode, string) {
	spec := &v.cs.Spec
	switch {
	case v.cs.DeletionTimestamp != nil,
		v.in.Namespace != nil && (v.in.Namespace.DeletionTimestamp != nil || v.in.Namespace.Status.Phase == corev1.NamespaceTerminating):
		return modeDeleting, ""
	case v.problem.message != "":
		return modeInvalid, ""
	case spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image == "":
		return modeAddress, ""
	case v.in.Namespace == nil && (spec.GrpcPodConfig == nil || spec.GrpcPodConfig.SecurityContextConfig == ""):
		return modeBlocked, ReasonNamespaceUnknown
	case v.service() != nil && v.claimOf(&v.service().ObjectMeta) == claimForeign:
		return modeBlocked, ReasonNameConflict
	case !fromConfigMap(v.cs):
		return modeImage, ""
	case v.configMap() == nil:
		return modeBlocked, ReasonConfigMapMissing
	}
	return modeConfigMap, ""
}

// judgeAll returns the Pods that are, or pretend to be, the catalog's, by name.
func (v *view) judgeAll(room []podFacts) []podFacts {
	pods := room
	for _, pod := range v.in.Pods {
		if pod.Namespace != v.cs.Namespace {
			continue
		}
		if roleOf(pod, v.cs.Name) == roleNone && !owns(v.cs.UID, pod.OwnerReferences) {
			continue
		}
		pods = append(pods, v.judge(pod))
	}
	sortPods(pods)
	return pods
}

func sortPods(pods []podFacts) {
	slices.SortFunc(pods, func(a, b podFacts) int {
		return cmp.Or(strings.Compare(a.pod.Name, b.pod.Name), strings.Compare(string(a.pod.UID), string(b.pod.UID)),
			strings.Compare(b.pod.ResourceVersion, a.pod.ResourceVersion))
	})
}

func (v *view) count() (t tally) {
	for i := range v.pods {
		p := &v.pods[i]
		if p.class == ClassForeign || p.role == roleNone {
			continue // somebody took its labels: it neither serves nor takes room
		}
		if p.class != ClassTerminated {
			t.unfinished++
			if p.class != ClassLost && p.class != ClassTerminating {
				t.active++
			}
		}
		switch p.role {
		case roleServing:
			t.addServing(p)
		case roleCandidate:
			if v.usable(p) {
				t.candidates++
				if p.ready {
					t.candidatesReady++
				}
			}
		}
	}
	return t
}

func (t *tally) addServing(p *podFacts) {
	one := 0
	if p.ready {
		one = 1
	}
	switch p.class {
	case ClassTerminated:
		t.terminated++
	case ClassLost:
		if p.lost == ReasonOverdue {
			t.terminating++
		} else {
			t.lost++
		}
	case ClassTerminating:
		t.terminating++
	case ClassStuck:
		t.stuck++
	case ClassOutdated:
		t.outdated++
		t.outdatedReady += one
	default:
		t.current++
		t.currentReady += one
		if p.class != ClassDisrupted {
			t.steady++
		}
	}
}

// ready is the number of Pods that serve.
func (t *tally) ready() int { return t.currentReady + t.outdatedReady }

// candidateLeft is the time that a candidate still has; a ready one has some
// always.
func (v *view) candidateLeft(p *podFacts) time.Duration {
	if p.ready {
		return time.Nanosecond
	}
	return v.left(p.pod.CreationTimestamp.Time, v.set.candidate)
}

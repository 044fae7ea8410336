// SPDX-License-Identifier: Apache-2.0

// Package polling decides when the image of a catalog is polled and what a poll came to.
// A poll is a candidate that pulls the image anew.
package polling

import (
	"cmp"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// MaxInterval bounds spec.updateStrategy.registryPoll.interval.
const MaxInterval = 10 * 365 * 24 * time.Hour

// Schedule is when an image is polled. A poll starts with the creation of its Pod; the
// status remembers it.
type Schedule struct {
	// On: the image is to be polled.
	On bool
	// Problem is what is wrong with the interval, empty when nothing is.
	Problem string
	// Last is when the last poll started; zero: never.
	Last time.Time
	// Left is the time until the next one.
	Left time.Duration
	// Wait is the time until the schedule may change by the clock alone; 0: never.
	Wait time.Duration
}

// Wanted reports whether the spec asks for an image to be polled that can change.
func Wanted(spec *v1alpha1.CatalogSourceSpec) bool {
	return hasStrategy(spec) && isImage(spec) && !strings.Contains(spec.Image, "@")
}

func hasStrategy(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.UpdateStrategy != nil && spec.UpdateStrategy.RegistryPoll != nil
}

func isImage(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image != ""
}

// Observe returns when the image of a CatalogSource is polled: no two polls within
// least, and each delayed by up to a tenth of the interval, as jitter says.
func Observe(cs *v1alpha1.CatalogSource, list pods.List, least time.Duration, jitter float64, now time.Time) Schedule {
	interval, problem := Interval(cs.Spec.UpdateStrategy, least)
	s := Schedule{On: Wanted(&cs.Spec), Problem: problem}
	if recorded := cs.Status.LatestImageRegistryPoll; recorded != nil {
		s.Last = recorded.Time
	}
	if !s.On {
		return s
	}
	today := now.UTC().Truncate(time.Second)
	if s.Last.After(now) {
		s.Last = today
	}
	delay := time.Duration(jitter * float64(interval) / 10).Truncate(time.Second)
	// A poll by a Pod that was made in the future counts as one of now, once the recorded
	// one is over, so that it is not written anew with each look.
	ahead := false
	for _, p := range list.Select(func(p *pods.Pod) bool { return p.Owned && p.MadeToPoll() }) {
		switch created := p.Object.CreationTimestamp.Time; {
		case created.After(now):
			s.Wait = pods.Nearest(s.Wait, created.Sub(now))
			ahead = ahead || p.Role == pods.RoleCandidate
		case created.After(s.Last):
			s.Last = created
		}
	}
	s.Left = s.until(cs, interval, now) + delay
	if ahead && s.Left <= 0 {
		s.Last = today
		s.Left = s.until(cs, interval, now) + delay
	}
	if ahead {
		s.Wait = pods.Nearest(s.Wait, s.Left)
	}
	return s
}

// until is the time until the next poll, without the delay.
func (s Schedule) until(cs *v1alpha1.CatalogSource, interval time.Duration, now time.Time) time.Duration {
	base := cmp.Or(s.Last, cs.CreationTimestamp.Time)
	switch {
	case s.Last.IsZero() && cs.CreationTimestamp.IsZero():
		return 0 // nothing else would ever make it due
	case base.After(now):
		base = now
	}
	return base.Add(interval).Sub(now)
}

// Interval returns the interval to poll at and what is wrong with the one of
// the spec, in OLM's words where it has some; empty when nothing is, or nothing is
// polled. It takes what the API's decoder leaves, and what was written in Go.
//
// Source: operator-framework/api pkg/operators/v1alpha1, UpdateStrategy.UnmarshalJSON.
// Differs: an interval that would poll all the time, or never, is bounded.
func Interval(strategy *v1alpha1.UpdateStrategy, least time.Duration) (time.Duration, string) {
	if strategy == nil || strategy.RegistryPoll == nil {
		return v1alpha1.DefaultRegistryPollDuration, ""
	}
	poll := strategy.RegistryPoll
	var interval time.Duration
	switch {
	case poll.ParsingError != "":
		return v1alpha1.DefaultRegistryPollDuration, poll.ParsingError
	case poll.Interval != nil:
		interval = poll.Interval.Duration
	case poll.RawInterval == "":
		return v1alpha1.DefaultRegistryPollDuration, "empty polling interval; cannot requeue registry server sync without a provided polling interval"
	default:
		var err error
		if interval, err = time.ParseDuration(poll.RawInterval); err != nil {
			return v1alpha1.DefaultRegistryPollDuration, "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of " +
				v1alpha1.DefaultRegistryPollDuration.String() + " instead. Error: " + err.Error()
		}
	}
	const field = "spec.updateStrategy.registryPoll.interval must be "
	switch {
	case interval <= 0:
		return least, field + "positive"
	case interval < least:
		return least, field + "at least " + least.String() + "; using " + least.String()
	case interval > MaxInterval:
		return MaxInterval, field + "at most 10 years; using 10 years"
	}
	return interval, ""
}

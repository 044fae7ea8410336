// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/examples/maintenancewindow"
	_ "github.com/olmcore/olm/fake/gen/seeded"
)

// decide returns whether a plan is approved at a time, and else when it will be.
func decide(t require.TestingT, window spec, now time.Time) (approved bool, next time.Time) {
	got, err := maintenancewindow.Reconcile(inputOf(window, func(in *maintenancewindow.Input) { in.Now = now }))
	require.NoError(t, err)
	if len(got.Transitions) > 0 {
		return true, time.Time{}
	}
	require.NotEmpty(t, got.Diagnostics, "%v", lines(got))
	return false, now.Add(got.RequeueAfter)
}

func TestOneWindowThroughDaylightSaving(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	night := spec{"schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "duration": "1h"}
	for now, want := range map[string]string{
		"2026-03-28T02:29:59+01:00": "2026-03-28T02:30:00+01:00",
		"2026-03-28T02:30:00+01:00": "open",
		"2026-03-28T03:29:59+01:00": "open",
		"2026-03-28T03:30:00+01:00": "2026-03-30T02:30:00+02:00", // there is no half past two on the 29th
		"2026-03-29T03:30:00+02:00": "2026-03-30T02:30:00+02:00",
		"2026-10-25T02:30:00+02:00": "open",
		"2026-10-25T03:29:59+01:00": "open", // the second half past two of that night opens it again
		"2026-10-25T03:30:00+01:00": "2026-10-26T02:30:00+01:00",
	} {
		approved, next := decide(t, night, at(now))
		if want == "open" {
			require.True(t, approved, now)
		} else {
			require.True(t, at(want).Equal(next), "%s: %s", now, next)
		}
	}
}

// TestADayWithoutMidnightMayBeLeftOut: the limit that the README names. The 24th of April 2026 begins at one o'clock in
// Cairo.
func TestADayWithoutMidnightMayBeLeftOut(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	friday := spec{"schedule": "0 5 * * FRI", "timeZone": "Africa/Cairo", "duration": "1h"}
	_, next := decide(t, friday, at("2026-04-22T12:00:00+02:00"))
	require.Equal(t, at("2026-05-01T05:00:00+03:00").UTC(), next.UTC(), "and not on the 24th")
	thursday := spec{"schedule": "0 5 * * THU", "timeZone": "Africa/Cairo", "duration": "1h"}
	_, next = decide(t, thursday, at("2026-04-23T12:00:00+02:00"))
	require.Equal(t, at("2026-04-30T05:00:00+03:00").UTC(), next.UTC(), "Friday the 24th is not taken for Thursday")
}

var zones = []string{"", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Asia/Beirut", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Chatham"}

// changes are instants near which clocks are moved in some of the zones.
var changes = []time.Time{
	time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC), time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC),
	time.Date(2026, 4, 23, 22, 0, 0, 0, time.UTC), time.Date(2026, 10, 29, 21, 0, 0, 0, time.UTC), time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 21, 0, 0, 0, time.UTC),
	time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC), time.Date(2026, 10, 3, 15, 30, 0, 0, time.UTC), time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC),
}

// leftOut are zones that move their clocks at midnight or by half an hour: there cron may leave out an opening of such
// a day.
var leftOut = []string{"Africa/Cairo", "Asia/Beirut", "America/Havana", "Australia/Lord_Howe"}

// TestAWindowIsOpenAsItsClockSays compares with a clock that is looked at minute by minute: a window is open exactly
// when it showed what the schedule says less than the duration ago, and what waits is approved at the next minute at
// which it does. Where an opening may be left out, a window is open at no other time.
func TestAWindowIsOpenAsItsClockSays(t *testing.T) {
	fields := []map[string]func(time.Time) bool{
		{"0": minute(0), "30": minute(30), "*/20": func(t time.Time) bool { return t.Minute()%20 == 0 }},
		{"*": always, "0": hour(0), "1": hour(1), "2": hour(2), "23": hour(23), "0-3": func(t time.Time) bool { return t.Hour() <= 3 }},
		{"*": always, "29": func(t time.Time) bool { return t.Day() == 29 }},
		{"*": always, "1-6": func(t time.Time) bool { return t.Month() <= time.June }},
		{"*": always, "SUN": func(t time.Time) bool { return t.Weekday() == time.Sunday }, "MON-FRI": func(t time.Time) bool { return t.Weekday()%6 != 0 }},
	}
	rapid.Check(t, func(t *rapid.T) {
		var text []string
		var matches []func(time.Time) bool
		for _, field := range fields {
			var keys []string
			for key := range field {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			key := rapid.SampledFrom(keys).Draw(t, "field")
			text, matches = append(text, key), append(matches, field[key])
		}
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		duration := rapid.SampledFrom([]time.Duration{time.Minute, 45 * time.Minute, 2 * time.Hour, 25 * time.Hour}).Draw(t, "duration")
		now := rapid.SampledFrom(changes).Draw(t, "change").Add(time.Duration(rapid.IntRange(-30*3600, 30*3600).Draw(t, "seconds")) * time.Second)
		opens := func(at time.Time) bool {
			at = at.In(location)
			day := matches[2](at) && matches[4](at)
			if text[2] != "*" && text[4] != "*" { // of two fields that both restrict it one is enough
				day = matches[2](at) || matches[4](at)
			}
			return day && matches[0](at) && matches[1](at) && matches[3](at)
		}
		approved, next := decide(t, spec{"schedule": strings.Join(text, " "), "timeZone": zone, "duration": duration.String()}, now)
		want := false
		for at := now.Truncate(time.Minute); at.After(now.Add(-duration)); at = at.Add(-time.Minute) {
			want = want || opens(at)
		}
		if slices.Contains(leftOut, zone) {
			require.True(t, want || !approved, "%v in %s at %s for %s", text, zone, now.In(location), duration)
			return
		}
		require.Equal(t, want, approved, "%v in %s at %s for %s", text, zone, now.In(location), duration)
		if approved {
			return
		}
		for at := now.Truncate(time.Minute).Add(time.Minute); at.Before(now.Add(50 * time.Hour)); at = at.Add(time.Minute) {
			if opens(at) {
				require.Equal(t, at.UTC(), next.UTC(), "%v in %s at %s", text, zone, now.In(location))
				return
			}
		}
		require.True(t, next.After(now.Add(49*time.Hour)))
	})
}

func always(time.Time) bool { return true }

func minute(n int) func(time.Time) bool { return func(t time.Time) bool { return t.Minute() == n } }

func hour(n int) func(time.Time) bool { return func(t time.Time) bool { return t.Hour() == n } }

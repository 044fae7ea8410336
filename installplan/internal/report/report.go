// SPDX-License-Identifier: Apache-2.0

// Package report contains the reasons that several packages for InstallPlans use, and limits the length of messages.
package report

import (
	"strings"
	"unicode/utf8"

	"github.com/olmcore/olm/internal/printable"
)

// Reasons. The constants of the same name with the prefix Reason in installplan, create and unpack explain them.
const (
	AppliedContentAltered   = "AppliedContentAltered"
	BundleInvalid           = "BundleInvalid"
	BundleNotUnpacked       = "BundleNotUnpacked"
	ConvertedElsewhere      = "ConvertedElsewhere"
	CSVContentDiffers       = "CSVContentDiffers"
	ExistingResourceInvalid = "ExistingResourceInvalid"
	ExtraDocumentsIgnored   = "ExtraDocumentsIgnored"
	KeyCase                 = "KeyCase"
	ManifestSkipped         = "ManifestSkipped"
	ManualOwner             = "ManualOwner"
	NewerCRDKept            = "NewerCRDKept"
	OptionalStepSkipped     = "OptionalStepSkipped"
	RelationRepaired        = "RelationRepaired"
	SharedObject            = "SharedObject"
	EarlierPlanUnfinished   = "EarlierPlanUnfinished"
	SubscriptionExists      = "SubscriptionExists"
	StepAbsent              = "StepAbsent"
	StepDiffers             = "StepDiffers"
	StepImmutable           = "StepImmutable"
	Superseded              = "Superseded"
	StepNameDiffers         = "StepNameDiffers"
	Truncated               = "Truncated"
	UnmanagedObjectUpdated  = "UnmanagedObjectUpdated"
)

// Clip returns text as valid UTF-8 with escaped invisible characters, so that a status can contain it. A text of more
// than 8 KiB is cut and ends with " ...".
func Clip(text string) string {
	const limit = 8 << 10
	text = printable.Text(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}

package log4j

import "time"

// period is how often a dated file rolls.
type period int

const (
	minutely period = iota
	hourly
	halfDaily
	daily
	weekly
	monthly
)

// periodOf finds the shortest period whose end changes the formatted date; ok
// is false where none does.
func periodOf(f dateFormat) (p period, ok bool) {
	epoch := time.Unix(0, 0).UTC()
	for p := minutely; p <= monthly; p++ {
		if f.format(epoch) != f.format(p.end(epoch)) {
			return p, true
		}
	}
	return 0, false
}

// end is the first moment after the period that at is in, in at's zone.
func (p period) end(at time.Time) time.Time {
	y, mo, d := at.Date()
	h, mi, _ := at.Clock()
	zone := at.Location()
	switch p {
	case minutely:
		return time.Date(y, mo, d, h, mi+1, 0, 0, zone)
	case hourly:
		return time.Date(y, mo, d, h+1, 0, 0, 0, zone)
	case halfDaily:
		return time.Date(y, mo, d, (h/12+1)*12, 0, 0, 0, zone)
	case daily:
		return time.Date(y, mo, d+1, 0, 0, 0, 0, zone)
	case weekly:
		return time.Date(y, mo, d+7-int(at.Weekday()), 0, 0, 0, 0, zone)
	case monthly:
		return time.Date(y, mo+1, 1, 0, 0, 0, 0, zone)
	}
	panic("log4j: no such period")
}
